package receiver

import (
	"context"
	"time"
)

// alert is one alert of a post, within the bounds of limits.go. It may still be
// unusable; that is the Recorder's to find out.
type alert struct {
	// Labels identify the alert: at least one, at most 64, none of them empty,
	// because an empty label is the same as none. The fingerprint has to be
	// computed from them.
	Labels map[string]string
	// Status is "firing" or "resolved", of this alert and not of its group.
	Status string
	// StartsAt is when it began to fire; zero if the post does not say.
	StartsAt time.Time
}

// The two statuses of an alert.
const (
	statusFiring   = "firing"
	statusResolved = "resolved"
)

// result is what became of one alert. It is a value of the label `result` of
// drydock_alerts_received_total.
type result string

// The closed list of results. resultAccepted and resultUnchanged are on their Nodes, or in the
// queue that is written there next, and resultSelfTest has done what it was sent for; the others are ignored for good and never change the
// answer to a post.
const (
	resultAccepted        result = "accepted"         // written to its Node, or queued for it
	resultUnchanged       result = "unchanged"        // its Node had it already
	resultNoPolicy        result = "no_policy"        // no policy matches it
	resultNoTarget        result = "no_target"        // it names no target, or the receiver found it unusable
	resultUnknownNode     result = "unknown_node"     // the node that it names does not exist
	resultUnknownPod      result = "unknown_pod"      // the pod that it names does not exist, or no node hosts it
	resultUnknownLocation result = "unknown_location" // the mesh has no leader of the location that it names
	resultOtherCluster    result = "other_cluster"    // it is another cluster's
	resultNodeFull        result = "node_full"        // its Node has no room for one more alert
	resultNotInCharge     result = "not_in_charge"    // another Drydock is in charge of the cluster, and this one writes nothing
	resultSelfTest        result = "self_test"        // the alert that always fires: that it arrived is all there is to it
)

// results are all of them, in the order of the documentation.
func results() []result {
	return []result{resultAccepted, resultUnchanged, resultNoPolicy, resultNoTarget, resultUnknownNode, resultUnknownPod, resultUnknownLocation, resultOtherCluster, resultNodeFull, resultNotInCharge, resultSelfTest}
}

// taken says whether the alert is on its Node or queued for it, where it has one.
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

// Recorder takes one alert for its Node, or says why it cannot be used.
//
// It is called for up to 16 alerts of a post, and for several posts, at the same
// time, and for the same alert again whenever Alertmanager repeats it. It must
// return soon after ctx ends. An error means that the alert is usable but could
// not be taken: the post is answered 503 and comes again. A Result means that
// the alert needs no second look.
type Recorder interface {
	// Record takes an Alert's parts, and gives a Result.
	Record(ctx context.Context, labels map[string]string, status string, startsAt time.Time) (result string, err error)
}
