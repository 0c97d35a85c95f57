package receiver

import (
	"context"
	"time"
)

// Alert is one alert of a post, within the bounds of limits.go. It may still be
// unusable; that is the Recorder's to find out.
type Alert struct {
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
	StatusFiring   = "firing"
	StatusResolved = "resolved"
)

// Result is what became of one alert. It is a value of the label `result` of
// drydock_alerts_received_total.
type Result string

// The closed list of results. Accepted and Unchanged are on their Nodes, or in the
// queue that is written there next, and SelfTest has done what it was sent for; the others are ignored for good and never change the
// answer to a post.
const (
	Accepted        Result = "accepted"         // written to its Node, or queued for it
	Unchanged       Result = "unchanged"        // its Node had it already
	NoPolicy        Result = "no_policy"        // no policy matches it
	NoTarget        Result = "no_target"        // it names no target, or the receiver found it unusable
	UnknownNode     Result = "unknown_node"     // the node that it names does not exist
	UnknownPod      Result = "unknown_pod"      // the pod that it names does not exist, or no node hosts it
	UnknownLocation Result = "unknown_location" // the mesh has no leader of the location that it names
	OtherCluster    Result = "other_cluster"    // it is another cluster's
	NodeFull        Result = "node_full"        // its Node has no room for one more alert
	NotInCharge     Result = "not_in_charge"    // another Drydock is in charge of the cluster, and this one writes nothing
	SelfTest        Result = "self_test"        // the alert that always fires: that it arrived is all there is to it
)

// Results are all of them, in the order of the documentation.
func Results() []Result {
	return []Result{Accepted, Unchanged, NoPolicy, NoTarget, UnknownNode, UnknownPod, UnknownLocation, OtherCluster, NodeFull, NotInCharge, SelfTest}
}

// taken says whether the alert is on its Node or queued for it, where it has one.
func (r Result) taken() bool { return r == Accepted || r == Unchanged || r == SelfTest }

func (r Result) known() bool {
	for _, k := range Results() {
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
