// Package intake takes alerts for their Nodes. Alerts come from posts of Alertmanager and from the
// leader's polls, and both use Take. An alert on a Node says that something may have changed there.
// It decides nothing: before a repair, Drydock queries Alertmanager.
package intake

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/routing"
)

// Intake takes alerts for their Nodes. Every replica has one; two that write the same alert write
// the same key.
type Intake struct {
	Config *remediations.Config
	// Writer writes on the Nodes what the Intake takes.
	Writer Writer
	// Charge returns why this installation is not in charge of the cluster, so that it writes
	// nothing, and whether another one is. Empty: this one is in charge. Nil: there is no other.
	Charge func() (why string, another bool)
	// Node looks a Node up in the cache by its exact name; nil: there is no such Node.
	Node func(name string) *corev1.Node
	// Carriers find the node for an alert whose target is not a node, by the target's kind. A kind
	// without a carrier is not configured, so its alerts have no node.
	Carriers map[remediations.Kind]Carrier
	Now      func() time.Time
	// Room counts alerts that the cache does not show yet; nil: no count, and one post may overfill
	// a Node.
	Room *Room
	// Expected is called before a firing alert of a post is written. It must not block. May be nil.
	Expected func()
	// Ended is called when an alert ends whose repair is in flight. It must not block. May be nil.
	Ended func()
	// Full is called with the node that had no room for one more alert of a post. May be nil.
	Full func(node string)
	// Arrived is called each time that the self-test's alert arrives. It must not block.
	Arrived func()
	Log     logr.Logger
}

// Writer writes annotations on the Node if its UID is still the same, or queues them to be written
// soon, as Queue does. A nil value removes the key. ErrGone: there is no such Node any more.
type Writer interface {
	// Put waits for a place in the queue until ctx ends.
	Put(ctx context.Context, n *corev1.Node, annotations map[string]*string) error
	// Offer does not wait. False: there is no place now.
	Offer(n *corev1.Node, annotations map[string]*string) (taken bool, err error)
	// Waiting returns the key's value after everything in the queue is written; a nil value: the
	// key will be gone. ok is false if nothing waits for it.
	Waiting(n *corev1.Node, key string) (value *string, ok bool)
}

// Direct is a Writer that writes at once, so that nothing waits.
type Direct func(ctx context.Context, n *corev1.Node, annotations map[string]*string) error

// Put implements Writer.
func (d Direct) Put(ctx context.Context, n *corev1.Node, annotations map[string]*string) error {
	return d(ctx, n, annotations)
}

// Offer implements Writer.
func (d Direct) Offer(n *corev1.Node, annotations map[string]*string) (taken bool, err error) {
	return true, d(context.Background(), n, annotations)
}

// Waiting implements Writer.
func (d Direct) Waiting(*corev1.Node, string) (value *string, ok bool) { return nil, false }

// Source is who brings an alert.
type Source int

// A post brings what Alertmanager sends. A poll brings what fires and what no post brought.
const (
	Post Source = iota
	Poll
)

// Record takes one alert of a post for its Node. It implements Recorder.
func (i Intake) Record(ctx context.Context, labels map[string]string, status string, startsAt time.Time) (Result, error) {
	result, err := i.record(ctx, labels, status, startsAt)
	if log := i.Log.V(1); log.Enabled() {
		log.Info("an alert arrived in a post", "alert", labels[model.AlertNameLabel], "fingerprint", remediations.Fingerprint(labels), "status", status, "outcome", result)
	}
	return result, err
}

func (i Intake) record(ctx context.Context, labels map[string]string, status string, startsAt time.Time) (Result, error) {
	if i.Config.IsSelfTest(labels) {
		if i.Arrived != nil {
			i.Arrived()
		}
		return SelfTest, nil // not about a node, whatever labels it has
	}
	route, why := routing.Of(i.Config, labels, i.Node)
	if why != remediations.MisrouteNone {
		return Result(why), nil
	}
	a := i.Config.NewAlert(route.Policy, labels, status, startsAt, i.Now())
	if kind := route.Policy.Kind; kind != remediations.KindNode {
		if carrier := i.Carriers[kind]; carrier != nil {
			var err error
			if route.Node, err = carrier(ctx, a.Key(), route.Name); err != nil {
				return "", err
			}
		}
		if route.Node == "" {
			return Result(i.Config.Unknown(kind)), nil
		}
	}
	n := i.Node(route.Node)
	if n == nil {
		return UnknownNode, nil
	}
	a, result, err := i.Take(ctx, n, a, Post)
	if result == Accepted {
		i.Log.Info("an alert was taken for its Node", "node", n.Name, "alert", a.Name, "fingerprint", a.Fingerprint, "policy", a.Policy, "status", a.Status)
	}
	return result, err
}

// Adopt takes an alert that a poll found for its Node, for engine.Options.Adopt. It does not wait.
// If the result is not Taken, a later poll tries again.
func (i Intake) Adopt(n *corev1.Node, a remediations.Alert) (remediations.Alert, Result) {
	a, result, err := i.Take(context.Background(), n, a, Poll)
	if err != nil {
		return a, "" // a later poll brings the alert again
	}
	return a, result
}

// Take takes the alert for its Node, and returns it with what the Node remembers of it. An alert
// that need not be written is a result, not an error. An error means that the alert was neither
// written nor queued.
func (i Intake) Take(ctx context.Context, n *corev1.Node, a remediations.Alert, from Source) (remediations.Alert, Result, error) {
	if i.Charge != nil {
		switch why, another := i.Charge(); {
		case another:
			return a, NotInCharge, nil
		case why != "": // a first leader will be elected in a moment, and the alert comes again
			return a, "", fmt.Errorf("this Drydock is not in charge of the cluster yet: %s", why)
		}
	}
	value, known, waits := i.there(n, a.Key())
	if from == Post && known && a.Reads(value) {
		return a, Unchanged, nil
	}
	old, err := remediations.DecodeAlert(a.Key(), value)
	read := known && err == nil
	if read {
		a = a.SeenSince(old)
	}
	switch {
	case from == Poll && waits: // a post brought it since the poll
		return a, Unchanged, nil
	case from == Post && read && old.Same(a):
		return a, Unchanged, nil
	case a.Status == remediations.StatusResolved && !known:
		return a, Unchanged, nil // Drydock does not act on this alert, so its end changes nothing
	case read && lateEnd(a, old):
		return a, Unchanged, nil
	case a.Status == remediations.StatusResolved && i.Config.Registry.Ends(n, a.Fingerprint):
		// The repair queries Alertmanager itself, and removes the alert when the repair ends. That
		// saves one write, on any replica. If another replica leads, its next poll sees the end.
		if i.Ended != nil {
			i.Ended()
		}
		return a, Unchanged, nil
	}
	drop, ok := i.Room.take(n, a, i.Now(), i.Writer.Waiting)
	if !ok {
		if from == Post && i.Full != nil {
			i.Full(n.Name)
		}
		return a, NodeFull, nil
	}
	switch err := i.write(ctx, n, writing(a, drop), a.Status, from); {
	case errors.Is(err, ErrGone):
		return a, UnknownNode, nil
	case err != nil:
		return a, "", err
	}
	return a, Accepted, nil
}

// write hands the annotations to the Writer. A post waits for a place, a poll does not: it runs in
// the engine's loop, and comes again.
func (i Intake) write(ctx context.Context, n *corev1.Node, annotations map[string]*string, status string, from Source) error {
	if from == Post {
		if i.Expected != nil && status == remediations.StatusFiring {
			i.Expected()
		}
		return i.Writer.Put(ctx, n, annotations)
	}
	taken, err := i.Writer.Offer(n, annotations)
	if err == nil && !taken {
		return ErrQueueFull
	}
	return err
}

// lateEnd reports that a is the end of an earlier episode of the alert than the firing one in old.
// A slow replica of Alertmanager delivers such an end after the alert has begun to fire again.
func lateEnd(a, old remediations.Alert) bool {
	return a.Status == remediations.StatusResolved && old.Status == remediations.StatusFiring && a.StartsAt.Before(old.StartsAt)
}

// writing returns the annotations that put the alert on its Node, and remove those that must make
// room for it. They are bound to the Node's UID, not to its version: each alert has its own key, so
// writers never overwrite each other.
func writing(a remediations.Alert, drop []string) map[string]*string {
	encoded := a.Encode()
	annotations := map[string]*string{a.Key(): &encoded}
	for _, k := range drop {
		annotations[k] = nil
	}
	return annotations
}

// there returns the Node's value under the key, or the value that it will have after everything
// that waits for it is written.
func (i Intake) there(n *corev1.Node, key string) (value string, known, waits bool) {
	waiting, waits := i.Writer.Waiting(n, key)
	switch {
	case !waits:
		value, known = n.Annotations[key]
	case waiting != nil:
		value, known = *waiting, true
	}
	return value, known, waits
}
