package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/routing"
	"drydock.dev/drydock/remediations/signs"
)

// adopt has alerts taken that the poll has seen and no post has brought, and remembers which nodes have an alert of a policy
// firing, and since when.
func (e *Engine) adopt(ctx context.Context) {
	if err := e.readNodes(ctx); err != nil {
		e.Log.Error(err, "the Nodes cannot be listed; alerts that only the poll saw wait for the next one")
		return
	}
	e.adoptions++
	e.firing, e.unrouted = map[string]time.Time{}, elsewhere{}
	unhealthy := map[string]time.Time{} // of those that fire, without what the Node itself denies
	onsets := fleet.Onsets{}
	lost, answered := map[string]alerts.Alert{}, false
	ends := map[[2]string]time.Time{}
	unshown, nodes := map[[2]string]adopted{}, map[[2]string]*corev1.Node{}
	carriers := map[remediations.Kind]func(fingerprint, name string) string{}
	for _, k := range kinds {
		carriers[k.of] = k.carrier(e, ctx)
	}
	for _, r := range e.word.Replicas {
		answered = answered || r.Err == nil
		// In an order that is the same each time that the same happens, and that begins with another one each time: where there
		// is no room for all, the same ones do not always come last.
		fingerprints := slices.Sorted(maps.Keys(r.Alerts))
		for i := range fingerprints {
			fp := fingerprints[(i+e.adoptions)%len(fingerprints)]
			a := r.Alerts[fp]
			// One that a person silenced is written too, so that people see what their silence holds. An inhibited one is not:
			// what inhibits may do so for the whole fleet at once.
			if !a.Active && len(a.SilencedBy) == 0 {
				continue
			}
			route, why := routing.Of(e.Config, a.Labels, e.roster.Node)
			if why != remediations.MisrouteNone {
				if stray(e.Config, a, why) {
					lost[fp] = a
				}
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
			n := e.roster.Node(route.Node)
			if carrier == nil && a.Active {
				onsets.Add(route.Policy, route.Node, a.StartsAt)
				if !e.denied(n, route.Policy) {
					unhealthy[route.Node] = a.StartsAt
				}
			}
			if n == nil || e.carries(n, fp, route.Policy.Name) {
				continue
			}
			alert := e.Config.NewAlert(route.Policy, a.Labels, remediations.StatusFiring, a.StartsAt, e.Clock.Now())
			if old, err := remediations.DecodeAlert(alert.Key(), n.Annotations[alert.Key()]); err == nil {
				if e.askedBeforeItsEnd(n, old, alert, ends) {
					continue
				}
				alert = alert.SeenSince(old)
			}
			alert, key, since := e.unshown.readopt(n, alert, e.Clock.Now())
			waits := e.Queued != nil && e.Queued(n, remediations.AlertPrefix+fp) // the receiver beside this engine is about to write it
			if !waits && !e.Adopt(n, alert) {
				continue
			}
			unshown[key], nodes[key] = adopted{alert, since}, n
			if !waits {
				e.Log.Info("an alert was found by the poll", "node", n.Name, "alert", alert.Name, "fingerprint", fp, "policy", alert.Policy, "status", alert.Status)
			}
		}
	}
	e.endsMet = ends
	e.compare(ctx, unshown, nodes)
	e.roster.Fire(unhealthy)
	e.keepOnsets(onsets)
	e.roster.Begin(onsets)
	if answered {
		e.strays.saw(lost, e.Config, e.roster.Node, e.Clock.Now())
	}
}

// keepOnsets gives the nodes that a policy repairs, or has repaired in vain, the time when their repair began: their alert may end while
// their machine restarts, and begin anew.
func (e *Engine) keepOnsets(onsets fleet.Onsets) {
	for _, m := range e.roster.Concerned() {
		r := e.journal(m.Node).Record
		if _, fires := e.firing[m.Node.Name]; r == nil || r.Intent == nil || (r.Phase == remediations.PhaseExhausted && !fires) {
			continue
		}
		if p := e.Config.Policy(r.Policy); p != nil {
			onsets.Add(p, m.Node.Name, r.Began)
		}
	}
}

// denied says that all signs of the policy's witness were seen a moment ago, and say that the node is well. A false or forged alert would
// otherwise open the breaker, and keep a real fault from being repaired.
func (e *Engine) denied(n *corev1.Node, p *remediations.Policy) bool {
	if n == nil || p.Witness == nil || p.Witness.None {
		return false
	}
	var read map[signs.Sign]signs.Testimony
	if m := e.memory[n.Name]; m != nil {
		read = m.read
	}
	now := e.Clock.Now()
	return signs.Weigh(p.Witness.Signs, n, read, now.Add(-remediations.LookFor), now).Well
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

// askedBeforeItsEnd says that the Node has the polled alert as ended, and that the poll may have been asked before that end: then
// Alertmanager is asked again at once. ends has when this process first met each such end.
func (e *Engine) askedBeforeItsEnd(n *corev1.Node, ended, polled remediations.Alert, ends map[[2]string]time.Time) bool {
	if ended.Status != remediations.StatusResolved || polled.StartsAt.After(ended.StartsAt) {
		return false
	}
	of := [2]string{string(n.UID), polled.Fingerprint}
	met, known := e.endsMet[of]
	if !known {
		met = e.Clock.Now()
	}
	ends[of] = met
	e.lookAgain = e.lookAgain || !known
	return e.word.AskedAt.Before(met)
}
