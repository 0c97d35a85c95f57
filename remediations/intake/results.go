package intake

import (
	"context"
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
)

// Recorder puts one alert of a post on its Node, or returns why it cannot be used. Record is called
// concurrently, and again with the same alert whenever Alertmanager repeats it. It must return soon
// after ctx ends. After an error the receiver answers 503, and Alertmanager sends the post again.
// After a result the alert need not come again.
type Recorder interface {
	Record(ctx context.Context, labels map[string]string, status string, startsAt time.Time) (Result, error)
}

// Result is what happened to one alert: the label `result` of drydock_alerts_received_total.
type Result string

// Accepted and Unchanged mean that the alert is on its Node or queued for it, or needs no write. Of
// the self-test's alert, only the time of its arrival is stored. With every other result the alert
// is ignored. The answer to the post is the same for every result.
const (
	Accepted        Result = "accepted"                                   // written on its Node, or queued for it
	Unchanged       Result = "unchanged"                                  // its Node already had it
	NoPolicy               = Result(remediations.MisrouteNoPolicy)        // no policy matches the alert
	NoTarget               = Result(remediations.MisrouteNoTarget)        // the alert names no target, or the receiver found it unusable
	UnknownNode            = Result(remediations.MisrouteUnknownNode)     // the alert's node does not exist
	UnknownPod             = Result(remediations.MisrouteUnknownPod)      // the alert's pod does not exist, or no node hosts it
	UnknownLocation        = Result(remediations.MisrouteUnknownLocation) // the mesh has no leader of the alert's location
	OtherCluster           = Result(remediations.MisrouteOtherCluster)    // the alert belongs to another cluster
	NodeFull        Result = "node_full"                                  // the Node has no room for one more alert
	NotInCharge     Result = "not_in_charge"                              // another Drydock is in charge of the cluster, and this one writes nothing
	SelfTest        Result = "self_test"                                  // the alert that always fires: only its arrival counts
)

// Results returns all results, in the order of the documentation.
func Results() []Result {
	return []Result{Accepted, Unchanged, NoPolicy, NoTarget, UnknownNode, UnknownPod, UnknownLocation, OtherCluster, NodeFull, NotInCharge, SelfTest}
}

// Taken reports whether the alert is on its Node or queued for it, or is the self-test's.
func (r Result) Taken() bool { return r == Accepted || r == Unchanged || r == SelfTest }

// Known reports whether r is one of Results.
func (r Result) Known() bool { return slices.Contains(Results(), r) }
