package receiver

import (
	"context"
	"time"
)

// alert is one alert of a post, within the bounds of limits.go. The Recorder decides whether it is
// usable.
type alert struct {
	// Labels identify the alert. There are 1 to 64, none of them empty, because an empty label
	// equals a missing one. The fingerprint must be computed from them.
	Labels map[string]string
	// Status is "firing" or "resolved", of this alert and not of its group.
	Status string
	// StartsAt is when the alert began to fire. Zero: the post does not say.
	StartsAt time.Time
}

// The two statuses of an alert.
const (
	statusFiring   = "firing"
	statusResolved = "resolved"
)

// result is the result for one alert. It is a value of the label `result` of
// drydock_alerts_received_total.
type result string

// This is the closed list of results. resultAccepted and resultUnchanged are on their Nodes, or in
// the queue that is written next. resultSelfTest has served its purpose. The others are ignored for
// good and never change the answer to a post.
const (
	resultAccepted        result = "accepted"         // written to its Node, or queued for it
	resultUnchanged       result = "unchanged"        // its Node already had it
	resultNoPolicy        result = "no_policy"        // no policy matches the alert
	resultNoTarget        result = "no_target"        // the alert names no target, or the receiver found it unusable
	resultUnknownNode     result = "unknown_node"     // the alert's node does not exist
	resultUnknownPod      result = "unknown_pod"      // the alert's pod does not exist, or no node hosts it
	resultUnknownLocation result = "unknown_location" // the mesh has no leader of the alert's location
	resultOtherCluster    result = "other_cluster"    // the alert belongs to another cluster
	resultNodeFull        result = "node_full"        // the Node has no room for one more alert
	resultNotInCharge     result = "not_in_charge"    // another Drydock is in charge of the cluster, and this one writes nothing
	resultSelfTest        result = "self_test"        // the alert that always fires: only its arrival counts
)

// results returns all of them, in the order of the documentation.
func results() []result {
	return []result{resultAccepted, resultUnchanged, resultNoPolicy, resultNoTarget, resultUnknownNode, resultUnknownPod, resultUnknownLocation, resultOtherCluster, resultNodeFull, resultNotInCharge, resultSelfTest}
}

// taken reports whether the alert is on its Node or queued for it, or is the self-test's.
func (r result) taken() bool {
	return r == resultAccepted || r == resultUnchanged || r == resultSelfTest
}

func (r result) known() bool {
	for _, k := range results() {
		if r == k {
			return true
		}
	}
	return false
}

// Recorder takes one alert for its Node, or returns why the alert cannot be used.
//
// It is called concurrently, for up to 16 alerts of a post and for several posts. It gets the same
// alert again whenever Alertmanager repeats it. It must return soon after ctx ends. An error means
// that the alert is usable but could not be taken: the post is answered 503 and comes again. A
// result means that the alert need not come again.
type Recorder interface {
	// Record takes the parts of an alert and returns a result.
	Record(ctx context.Context, labels map[string]string, status string, startsAt time.Time) (result string, err error)
}
