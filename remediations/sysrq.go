package remediations

import "time"

// sysrq makes the kernel of a machine reboot at once, through /proc/sysrq-trigger. It is for a host
// whose processes no longer end, so that a normal reboot hangs. It stops nothing, and writes and
// unmounts nothing before. Its proof is the proof of a reboot.
var sysrq = Remediation{
	Name: "sysrq", Verb: "force a reboot of", Disruptive: true, Once: true, LooksFirst: true, Restarts: true, Wait: 10 * time.Minute, Attempts: 1,
	Invasive: 9, Proof: rebooted,
}
