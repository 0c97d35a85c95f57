package remediations

import "time"

// external has a remediator of the cluster reboot the machine, such as SelfNodeRemediation: an object is made from a template, and
// deleted when the attempt is over. What the object's status says is the remediator's opinion. The new boot ID is the proof.
var external = Remediation{
	Name: "external", Verb: "have an external remediator reboot", Disruptive: true, Once: true, LooksFirst: true, Wait: 10 * time.Minute, Attempts: 1,
	Invasive: 9, Proof: rebooted,
}

// Template is an object that remediation objects are made from.
type Template struct{ APIVersion, Kind, Namespace, Name string }

func (t Template) String() string {
	if t == (Template{}) {
		return ""
	}
	return t.Kind + " " + t.Namespace + "/" + t.Name
}
