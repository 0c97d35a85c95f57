package remediations

import "time"

// rolloutRestart restarts a DaemonSet's pods on all nodes.
var rolloutRestart = Remediation{
	Name: "rollout-restart", Verb: "restart, in the whole cluster, the DaemonSet that fails on", Disruptive: true, Once: true, LooksFirst: true,
	PassedOver: true, ClusterWide: true, RenewsLease: true, AsksPods: true, Wait: 10 * time.Minute, Attempts: 1, Invasive: 6, Proof: succeeded,
}

// applyCNI never applies an older version than the installed one.
var applyCNI = Remediation{
	Name: "apply-cni", Verb: "apply, in the whole cluster, the network manifest that is missing on", Disruptive: true, Once: true, LooksFirst: true,
	PassedOver: true, ClusterWide: true, RenewsLease: true, AsksPods: true, Wait: 10 * time.Minute, Attempts: 1, Invasive: 7, Proof: succeeded,
}
