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
	// ResultNotInCharge is an alert that another Drydock, which is in charge of the cluster, is to write.
	ResultNotInCharge = "not_in_charge"
)

// Inbox writes received alerts on their Nodes. Every replica has one; two that write the same alert write the same key.
type Inbox struct {
	Config *remediations.Config
	// Patch writes annotations on the Node if it still is the one of that UID, or takes them to be written soon, as Queue.Put
	// does; a nil value removes the key.
	Patch func(ctx context.Context, n *corev1.Node, annotations map[string]*string) error
	// Charge says why this installation is not in charge of the cluster, so that it writes nothing, and whether another one is; empty:
	// this one is. Nil: there is no other.
	Charge func() (why string, another bool)
	// Waiting says what will be under that key when all that was taken is written; nil: nothing waits.
	Waiting func(n *corev1.Node, key string) (value *string, ok bool)
	// Node looks a Node up in the cache by its exact name; nil: there is none.
	Node func(name string) *corev1.Node
	// Carriers say on which node an alert belongs that is about something else than a node, by the kind of that. One that is not
	// among them is nowhere: it is not configured.
	Carriers map[remediations.Kind]Carrier
	Now      func() time.Time
	// Room counts what the cache does not show yet; nil: nothing does, and one post may overfill a Node.
	Room *Room
	// Expected is told that a firing alert is about to be written. It must not block. Nil: nobody is told.
	Expected func()
	// Ended is told that an alert is over whose repair is in flight. It must not block. Nil: nobody is told.
	Ended func()
	// Full is told the node that had no room for one more alert.
	Full func(node string)
	// Arrived is told each time that the self-test's alert arrived. It must not block.
	Arrived func()
	Log     logr.Logger
}

// Carrier says on which node the alert with that key, about the target of that name, belongs; empty: on none, or there is no such
// target.
type Carrier func(ctx context.Context, key, name string) (node string, err error)

// Record takes an alert for its Node. An alert that cannot be used is a result, not an error; an error means that a usable
// one was neither written nor queued before ctx ended.
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
		return ResultSelfTest, nil // about no node, whatever labels it has
	}
	switch why, another := i.lacksCharge(); {
	case another:
		return ResultNotInCharge, nil
	case why != "": // a first leader is elected in a moment, and the alert is posted again
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
		return ResultUnchanged, nil // the end of something that nobody acts upon is no news
	case known && err == nil && lateEnd(a, old):
		return ResultUnchanged, nil
	}
	if err == nil {
		a = a.SeenSince(old)
	}
	if status == remediations.StatusResolved && i.Config.Registry.Ends(n, a.Fingerprint) {
		// The repair asks Alertmanager itself, and takes the alert off with its own end: one write less, on whichever replica
		// this is. Where another one leads, its next poll sees it.
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
		return string(remediations.MisrouteUnknownNode), nil // deleted, or another Node of that name by now
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

// lateEnd says that a is the end of an earlier episode of the alert than the one that fires by old. A slow replica of Alertmanager
// delivers it when the alert has begun to fire again.
func lateEnd(a, old remediations.Alert) bool {
	return a.Status == remediations.StatusResolved && old.Status == remediations.StatusFiring && a.StartsAt.Before(old.StartsAt)
}

// writing are the annotations that put the alert on its Node, and take off what must make room for it. They are bound to the
// Node's UID, not to its version: one key an alert, so writers never overwrite each other.
func writing(a remediations.Alert, drop []string) map[string]*string {
	encoded := a.Encode()
	annotations := map[string]*string{a.Key(): &encoded}
	for _, k := range drop {
		annotations[k] = nil
	}
	return annotations
}

// Adopting takes alerts that no post has brought, as engine.Options.Adopt: where the Node has room, and the offer to write them is
// taken, as by Queue.Offer.
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

// there is what the Node has under the key, or will have as soon as all that waits for it is written.
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
