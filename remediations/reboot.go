package remediations

import "time"

// reboot restarts the machine through its provider. Its proof is a new boot ID. A node that is
// Ready with the old boot ID did not reboot.
var reboot = Remediation{
	Name: "reboot", Verb: "reboot", Disruptive: true, Once: true, LooksFirst: true, Restarts: true, Wait: 10 * time.Minute, Attempts: 1, Invasive: 8,
	Proof: rebooted,
}

func rebooted(intent *Intent, n *NodeFacts, _ Answers) (bool, string) {
	switch {
	case intent.BootID == "" || n.BootID == "":
		return false, "the node reports no boot ID, so a reboot and a recovery cannot be distinguished"
	case intent.BootID == n.BootID:
		return false, "the boot ID is still the one from before the reboot"
	}
	return true, ""
}
