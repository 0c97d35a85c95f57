package remediations

import "time"

// external lets another controller of the cluster reboot the machine, for example
// SelfNodeRemediation. The proof is a new boot ID, not the object's status.
var external = Remediation{
	Name: "external", Verb: "have an external remediator reboot", Disruptive: true, Once: true, LooksFirst: true, Restarts: true, Wait: 10 * time.Minute, Attempts: 1,
	Invasive: 9, Proof: rebooted,
}

// externalReplace lets another controller of the cluster replace the machine, for example
// MachineDeletionRemediation. Apart from that it equals replace.
var externalReplace = func() Remediation {
	r := replace
	r.Name, r.Verb = "external-replace", "have an external remediator replace"
	return r
}()

// MachineDeletion is the kind of template for a controller that deletes the machine. The
// controllers of all other kinds reboot the machine.
const MachineDeletion = "MachineDeletionRemediationTemplate"

// Template names an object that remediation objects are created from.
type Template struct{ APIVersion, Kind, Namespace, Name string }

func (t Template) String() string {
	if t == (Template{}) {
		return ""
	}
	return t.Kind + " " + t.Namespace + "/" + t.Name
}
