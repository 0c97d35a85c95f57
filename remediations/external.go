package remediations

import "time"

// external has a remediator of the cluster reboot the machine, for example SelfNodeRemediation.
// Drydock creates an object from a template, and deletes the object when the attempt has ended. The
// object's status is only the remediator's opinion: the new boot ID is the proof.
var external = Remediation{
	Name: "external", Verb: "have an external remediator reboot", Disruptive: true, Once: true, LooksFirst: true, Restarts: true, Wait: 10 * time.Minute, Attempts: 1,
	Invasive: 9, Proof: rebooted,
}

// externalReplace has a remediator of the cluster replace the machine, for example
// MachineDeletionRemediation. All else is as in replace: which nodes it refuses, the drain before
// it, the ledger's fence, and its proof, which is another machine.
var externalReplace = func() Remediation {
	r := replace
	r.Name, r.Verb = "external-replace", "have an external remediator replace"
	return r
}()

// MachineDeletion is the kind of template whose remediator deletes the machine. Remediators of
// other kinds reboot it.
const MachineDeletion = "MachineDeletionRemediationTemplate"

// Template is the template that Drydock creates remediation objects from.
type Template struct{ APIVersion, Kind, Namespace, Name string }

func (t Template) String() string {
	if t == (Template{}) {
		return ""
	}
	return t.Kind + " " + t.Namespace + "/" + t.Name
}
