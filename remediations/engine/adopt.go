package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/routing"
)

const (
	// adoptAtOnce bounds the alerts that are adopted between two passes: in a storm the posts bring most of them anyway, and
	// what is decided meanwhile must not wait for a thousand writes.
	adoptAtOnce = 32
	// adoptFor bounds the time that writing them may take, which in a storm is ten times what it is otherwise.
	adoptFor = 500 * time.Millisecond
)

// adopt writes alerts on their Nodes that the poll has seen and no post has brought, and remembers which nodes have an
// alert of a policy firing, and since when.
func (e *Engine) adopt(ctx context.Context) {
	if err := e.readNodes(ctx); err != nil {
		e.Log.Error(err, "the Nodes cannot be listed; alerts that only the poll saw wait for the next one")
		return
	}
	wrote := map[string]*corev1.Node{}
	node := func(name string) *corev1.Node {
		if n := wrote[name]; n != nil {
			return n
		}
		return e.roster.Node(name)
	}
	e.adoptions++
	e.firing, e.unadopted, e.unrouted = map[string]time.Time{}, false, elsewhere{}
	adopted, writing, failed := 0, time.Duration(0), false // an API server that refuses is not asked for each: the next poll goes on
	carriers := map[remediations.Kind]func(fingerprint, name string) string{}
	for _, k := range e.kinds {
		carriers[k.of] = k.carrier(e, ctx)
	}
	for _, r := range e.word.Replicas {
		// In an order that is the same each time that the same happens, and that begins with another one each time: where one
		// cannot be written, the others do not always come after it.
		fingerprints := slices.Sorted(maps.Keys(r.Alerts))
		for i := range fingerprints {
			fp := fingerprints[(i+e.adoptions)%len(fingerprints)]
			a := r.Alerts[fp]
			// One that a person silenced is written too, so that people see what their silence holds. An inhibited one is not:
			// what inhibits may do so for the whole fleet at once.
			if !a.Active && len(a.SilencedBy) == 0 {
				continue
			}
			route, why := routing.Of(e.Config, a.Labels, node)
			if why != remediations.MisrouteNone {
				continue
			}
			if !a.RoutedHere(e.Config) {
				e.unrouted.add(e.word, fp, a, route, e.Config)
				continue
			}
			of := route.Policy.Kind
			carrier := carriers[of]
			switch t, ok := e.firing[route.Node]; {
			case carrier != nil: // a sidecar's alert is no fault of the node that hosts it, nor a location's of its leader
				route.Node = carrier(fp, route.Name)
			case of != remediations.KindNode: // no Node carries those about API servers: they are the rescue's
				continue
			case a.Active && (!ok || a.StartsAt.Before(t)):
				e.firing[route.Node] = a.StartsAt
			}
			n := node(route.Node)
			if n == nil {
				continue
			}
			if e.carries(n, fp, route.Policy.Name) {
				continue
			}
			if e.Queued != nil && e.Queued(n, remediations.AlertPrefix+fp) {
				continue // the receiver beside this engine is about to write it
			}
			if e.Adopt == nil && (adopted == adoptAtOnce || failed || writing > adoptFor) {
				e.unadopted = !failed
				continue
			}
			alert := e.Config.NewAlert(route.Policy, a.Labels, remediations.StatusFiring, a.StartsAt, e.Clock.Now())
			if old, err := remediations.DecodeAlert(alert.Key(), n.Annotations[alert.Key()]); err == nil {
				alert = alert.SeenSince(old)
			}
			found := func() {
				e.Log.Info("an alert was found by the poll", "node", n.Name, "alert", alert.Name, "fingerprint", fp, "policy", alert.Policy, "status", alert.Status)
			}
			if e.Adopt != nil {
				if e.Adopt(n, alert) {
					found()
				}
				continue
			}
			drop, ok := e.core.admit(n.Annotations, alert)
			if !ok {
				continue // the receiver said so once; the poll comes back to it
			}
			value := alert.Encode()
			change := NodeChange{Annotations: map[string]*string{alert.Key(): &value}}
			for _, k := range drop {
				change.Annotations[k] = nil
			}
			adopted++
			began := e.Clock.Now()
			written, err := e.write(ctx, n, change)
			writing += e.Clock.Now().Sub(began)
			if err != nil {
				failed = !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound)
				continue
			}
			wrote[route.Node] = written
			found()
		}
	}
	e.roster.Fire(e.firing)
}

// carries says that the alert is on the Node already, as firing, for that policy, and since a time that can be.
func (e *Engine) carries(n *corev1.Node, fingerprint, policy string) bool {
	if _, has := n.Annotations[remediations.AlertPrefix+fingerprint]; !has {
		return false
	}
	return slices.ContainsFunc(e.journal(n).Alerts, func(a remediations.Alert) bool {
		return a.Fingerprint == fingerprint && a.Status == remediations.StatusFiring && a.Policy == policy && !a.FromTheFuture(e.Clock.Now())
	})
}
