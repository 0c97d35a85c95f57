package remediations

import "time"

// sysrq makes the kernel reboot at once, through /proc/sysrq-trigger, for a host whose normal
// reboot hangs. The kernel does not first stop processes, write data to disk or unmount file
// systems.
var sysrq = Remediation{
	Name: "sysrq", Verb: "force a reboot of", Disruptive: true, Once: true, LooksFirst: true, Restarts: true, Wait: 10 * time.Minute, Attempts: 1,
	Invasive: 9, Proof: rebooted,
}
