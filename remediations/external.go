package remediations

import "time"

// external has a remediator of the cluster reboot the machine, such as SelfNodeRemediation: an object is made from a template, and
// deleted when the attempt is over. What the object's status says is the remediator's opinion. The new boot ID is the proof.
var external = Remediation{
	Name: "external", Verb: "have an external remediator reboot", Disruptive: true, Once: true, LooksFirst: true, Restarts: true, Wait: 10 * time.Minute, Attempts: 1,
	Invasive: 9, Proof: rebooted,
}

// externalReplace has a remediator of the cluster replace the machine, such as MachineDeletionRemediation. All else is true of it that is
// true of replace: whom it refuses, the drain before it, the ledger's fence, and its proof, which is another machine.
var externalReplace = func() Remediation {
	r := replace
	r.Name, r.Verb = "external-replace", "have an external remediator replace"
	return r
}()

// MachineDeletion is the kind of template whose remediator deletes the machine. Others reboot it.
const MachineDeletion = "MachineDeletionRemediationTemplate"

// Template is an object that remediation objects are made from.
type Template struct{ APIVersion, Kind, Namespace, Name string }

func (t Template) String() string {
	if t == (Template{}) {
		return ""
	}
	return t.Kind + " " + t.Namespace + "/" + t.Name
}
