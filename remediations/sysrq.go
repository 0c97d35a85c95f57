package remediations

import "time"

// sysrq makes the machine's kernel reboot immediately, through /proc/sysrq-trigger. It is for a
// host whose normal reboot hangs, because processes do not end. The kernel does not first stop
// processes, write data to disk or unmount file systems. The proof is the same as for a reboot.
var sysrq = Remediation{
	Name: "sysrq", Verb: "force a reboot of", Disruptive: true, Once: true, LooksFirst: true, Restarts: true, Wait: 10 * time.Minute, Attempts: 1,
	Invasive: 9, Proof: rebooted,
}
