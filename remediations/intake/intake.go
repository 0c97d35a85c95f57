// Package intake writes alerts on the Nodes that they are about. Alerts come from Alertmanager's
// posts and from the leader's polls, and both use Take. An alert on a Node only shows that
// something may have changed there. This package decides nothing: before a repair, Drydock queries
// Alertmanager.
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

// Intake writes alerts on their Nodes. Every replica has one. Two replicas that write the same
// alert write the same annotation.
type Intake struct {
	Config *remediations.Config
	Writer Writer
	// Why this installation is not in charge of the cluster, or "" if it is. An installation that
	// is not in charge writes nothing. another is true if another one is in charge. Nil means that
	// there is only one installation.
	Charge func() (why string, another bool)
	// Node returns the cached Node with exactly that name, or nil if there is none.
	Node func(name string) *corev1.Node
	// Carriers find the node for an alert whose target is not a node, by the target's kind. A kind
	// without a carrier is not configured, so no node is found for its alerts.
	Carriers map[remediations.Kind]Carrier
	Now      func() time.Time
	// Counts alerts that the cache does not show yet. If it is nil, one post may put more alerts on
	// a Node than the limit allows.
	Room *Room
	// Called before a firing alert of a post is written. It must not block. May be nil.
	Expected func()
	// Called when the alert of a repair in flight has ended. It must not block. May be nil.
	Ended func()
	// Called with the node that had no room for one more alert of a post. May be nil.
	Full func(node string)
	// Called each time that the self-test's alert arrives. It must not block.
	Arrived func()
	Log     logr.Logger
}

// Writer writes annotations on a Node, directly or through a queue, if its UID is still the same. A
// nil value removes the key. ErrGone means that the Node no longer exists.
type Writer interface {
	// Put waits for a place in the queue until ctx ends.
	Put(ctx context.Context, n *corev1.Node, annotations map[string]*string) error
	// Offer does not wait. It returns false if the queue has no place now.
	Offer(n *corev1.Node, annotations map[string]*string) (taken bool, err error)
	// Waiting returns the value that the key will have when the queue is written, or nil if it will
	// be removed. ok is false if no write of this key is queued.
	Waiting(n *corev1.Node, key string) (value *string, ok bool)
}

// Direct is a Writer without a queue: it writes before it returns.
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

// Source is where an alert comes from.
type Source int

// A post brings the alerts that Alertmanager sends. A poll finds active alerts that no post
// brought.
const (
	Post Source = iota
	Poll
)

// Record puts one alert of a post on its Node. It implements Recorder.
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
		return SelfTest, nil // this alert is not about a node, even if it has a node label
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
		i.Log.Info("an alert was accepted for its Node", "node", n.Name, "alert", a.Name, "fingerprint", a.Fingerprint, "policy", a.Policy, "status", a.Status)
	}
	return result, err
}

// Adopt stores an alert from a poll on its Node (engine.Options.Adopt). It does not wait. If the
// result is not Taken, a later poll tries again.
func (i Intake) Adopt(n *corev1.Node, a remediations.Alert) (remediations.Alert, Result) {
	a, result, err := i.Take(context.Background(), n, a, Poll)
	if err != nil {
		return a, "" // a later poll brings the alert again
	}
	return a, result
}

// Take puts the alert on its Node. It returns the alert, with the facts that the Node already had
// about it (see Alert.SeenSince). An error means that the alert was neither written nor queued.
func (i Intake) Take(ctx context.Context, n *corev1.Node, a remediations.Alert, from Source) (remediations.Alert, Result, error) {
	if i.Charge != nil {
		switch why, another := i.Charge(); {
		case another:
			return a, NotInCharge, nil
		case why != "": // the first leader election takes a moment, and the alert comes again
			return a, "", fmt.Errorf("this Drydock installation is not in charge of the cluster yet: %s", why)
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
	case from == Poll && waits: // a post has brought the alert since the poll
		return a, Unchanged, nil
	case from == Post && read && old.Same(a):
		return a, Unchanged, nil
	case a.Status == remediations.StatusResolved && !known:
		return a, Unchanged, nil // Drydock does not act on this alert, so its end changes nothing
	case read && lateEnd(a, old):
		return a, Unchanged, nil
	case a.Status == remediations.StatusResolved && i.Config.Registry.Ends(n, a.Fingerprint):
		// A repair in flight asks Alertmanager itself, and removes the alert from the Node when it
		// ends. So the resolved alert need not be written. Ended wakes the engine if this replica
		// leads. The poll of another leader shows that the alert has ended.
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

// A post waits for a place in the queue. A poll does not, because it runs in the engine's loop and
// the next poll brings the alert again.
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

// The resolved alert a is older than old, which fires again since then: a slow Alertmanager replica
// can deliver the end of the earlier alert too late.
func lateEnd(a, old remediations.Alert) bool {
	return a.Status == remediations.StatusResolved && old.Status == remediations.StatusFiring && a.StartsAt.Before(old.StartsAt)
}

// The annotations remove the alerts in drop, to make room. The write requires the Node's UID but
// not its resourceVersion: each alert has its own key, so writers never overwrite each other.
func writing(a remediations.Alert, drop []string) map[string]*string {
	encoded := a.Encode()
	annotations := map[string]*string{a.Key(): &encoded}
	for _, k := range drop {
		annotations[k] = nil
	}
	return annotations
}

// known is false if the Node does not have the key. If a write of the key is queued, waits is true,
// and the value is the one after that write.
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
