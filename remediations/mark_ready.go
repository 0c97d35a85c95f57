package remediations

import "time"

// markReady approves a gated sidecar, which then lets its pod's main container go on. It disrupts nothing. Its proof is
// that the sidecar itself answers ready, which DecideSidecar asks for.
var markReady = Remediation{Name: "mark-ready", Verb: "mark ready", Once: true, Target: KindSidecar, Wait: time.Minute, Attempts: 1}
