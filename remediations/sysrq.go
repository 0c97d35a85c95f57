package remediations

import "time"

// sysrq has the kernel of a machine reboot at once, by /proc/sysrq-trigger: for a host on which nothing ends any more, a reboot included.
// Nothing is stopped, written to disk or unmounted before. Its proof is that of a reboot.
var sysrq = Remediation{
	Name: "sysrq", Verb: "force a reboot of", Disruptive: true, Once: true, LooksFirst: true, Restarts: true, Wait: 10 * time.Minute, Attempts: 1,
	Invasive: 9, Proof: rebooted,
}
