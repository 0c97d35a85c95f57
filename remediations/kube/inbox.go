package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/routing"
)

// Results of an alert that were not Misroutes; all of them are values of drydock_alerts_received_total.
const (
	ResultAccepted  = "accepted"
	ResultUnchanged = "unchanged"
	ResultNodeFull  = "node_full"
	ResultSelfTest  = "self_test"
	// ResultNotInCharge is an alert that another Drydock writes, because that one is in charge of
	// the cluster.
	ResultNotInCharge = "not_in_charge"
)

// Inbox writes received alerts on their Nodes. Every replica has one; two that write the same alert
// write the same key.
type Inbox struct {
	Config *remediations.Config
	// Patch writes annotations on the Node if its UID is still the same, or queues them to be
	// written soon, as Queue.Put does; a nil value removes the key.
	Patch func(ctx context.Context, n *corev1.Node, annotations map[string]*string) error
	// Charge returns why this installation is not in charge of the cluster, so that it writes
	// nothing, and whether another one is. Empty: this one is in charge. Nil: there is no other.
	Charge func() (why string, another bool)
	// Waiting returns the key's value after everything in the queue is written; a nil value: the
	// key will be gone. ok is false if nothing waits for it. May be nil: nothing waits.
	Waiting func(n *corev1.Node, key string) (value *string, ok bool)
	// Node looks a Node up in the cache by its exact name; nil: there is no such Node.
	Node func(name string) *corev1.Node
	// Carriers find the node for an alert whose target is not a node, by the target's kind. A kind
	// without a carrier is not configured, so its alerts have no node.
	Carriers map[remediations.Kind]Carrier
	Now      func() time.Time
	// Room counts alerts that the cache does not show yet; nil: no count, and one post may overfill
	// a Node.
	Room *Room
	// Expected is called before a firing alert is written. It must not block. May be nil.
	Expected func()
	// Ended is called when an alert ends whose repair is in flight. It must not block. May be nil.
	Ended func()
	// Full is called with the node that had no room for one more alert. May be nil.
	Full func(node string)
	// Arrived is called each time that the self-test's alert arrives. It must not block.
	Arrived func()
	Log     logr.Logger
}

// Carrier returns the node for the alert with that key, about the target of that name. It returns
// an empty name if there is no such target, or no node for it.
type Carrier func(ctx context.Context, key, name string) (node string, err error)

// Record accepts an alert for its Node. An alert that cannot be used is a result, not an error. An
// error means that a usable alert was neither written nor queued before ctx ended.
func (i Inbox) Record(ctx context.Context, labels map[string]string, status string, startsAt time.Time) (string, error) {
	result, err := i.record(ctx, labels, status, startsAt)
	if log := i.Log.V(1); log.Enabled() {
		log.Info("an alert arrived in a post", "alert", labels[model.AlertNameLabel], "fingerprint", remediations.Fingerprint(labels), "status", status, "outcome", result)
	}
	return result, err
}

func (i Inbox) record(ctx context.Context, labels map[string]string, status string, startsAt time.Time) (string, error) {
	if i.Config.IsSelfTest(labels) {
		if i.Arrived != nil {
			i.Arrived()
		}
		return ResultSelfTest, nil // not about a node, whatever labels it has
	}
	switch why, another := i.lacksCharge(); {
	case another:
		return ResultNotInCharge, nil
	case why != "": // a first leader will be elected in a moment, and the alert is posted again
		return "", fmt.Errorf("this Drydock is not in charge of the cluster yet: %s", why)
	}
	route, why := routing.Of(i.Config, labels, i.Node)
	if why != remediations.MisrouteNone {
		return string(why), nil
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
			return string(i.Config.Unknown(kind)), nil
		}
	}
	n := i.Node(route.Node)
	if n == nil {
		return string(remediations.MisrouteUnknownNode), nil
	}
	value, known := i.there(n, a.Key())
	if known && a.Reads(value) {
		return ResultUnchanged, nil
	}
	old, err := remediations.DecodeAlert(a.Key(), value)
	switch {
	case known && err == nil && old.Same(a):
		return ResultUnchanged, nil
	case !known && status == remediations.StatusResolved:
		return ResultUnchanged, nil // Drydock does not act on this alert, so its end changes nothing
	case known && err == nil && lateEnd(a, old):
		return ResultUnchanged, nil
	}
	if err == nil {
		a = a.SeenSince(old)
	}
	if status == remediations.StatusResolved && i.Config.Registry.Ends(n, a.Fingerprint) {
		// The repair queries Alertmanager itself, and removes the alert when the repair ends. That
		// saves one write, on any replica. If another replica leads, its next poll sees the end.
		if i.Ended != nil {
			i.Ended()
		}
		return ResultUnchanged, nil
	}
	drop, ok := i.Room.take(n, a, i.Now(), i.Waiting)
	if !ok {
		if i.Full != nil {
			i.Full(n.Name)
		}
		return ResultNodeFull, nil
	}
	if i.Expected != nil && status == remediations.StatusFiring {
		i.Expected()
	}
	err = i.Patch(ctx, n, writing(a, drop))
	switch {
	case errors.Is(err, engine.ErrNotFound), errors.Is(err, engine.ErrConflict):
		return string(remediations.MisrouteUnknownNode), nil // deleted, or replaced by another Node of that name
	case err != nil:
		return "", err
	}
	i.Log.Info("an alert was taken for its Node", "node", n.Name, "alert", a.Name, "fingerprint", a.Fingerprint, "policy", a.Policy, "status", a.Status)
	return ResultAccepted, nil
}

func (i Inbox) lacksCharge() (why string, another bool) {
	if i.Charge == nil {
		return "", false
	}
	return i.Charge()
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

// Adopting returns a function that queues alerts which no post has brought, for
// engine.Options.Adopt. It needs room on the Node, and an offer that accepts the write, for example
// Queue.Offer.
func (i Inbox) Adopting(offer func(n *corev1.Node, annotations map[string]*string) (taken bool, err error)) func(n *corev1.Node, a remediations.Alert) bool {
	return func(n *corev1.Node, a remediations.Alert) bool {
		if why, _ := i.lacksCharge(); why != "" {
			return false
		}
		drop, ok := i.Room.take(n, a, i.Now(), i.Waiting)
		if !ok {
			return false
		}
		taken, err := offer(n, writing(a, drop))
		return taken && err == nil
	}
}

// there returns the Node's value under the key, or the value that it will have after everything
// that waits for it is written.
func (i Inbox) there(n *corev1.Node, key string) (value string, known bool) {
	if i.Waiting != nil {
		if waits, ok := i.Waiting(n, key); ok {
			if waits == nil {
				return "", false
			}
			return *waits, true
		}
	}
	value, known = n.Annotations[key]
	return value, known
}
