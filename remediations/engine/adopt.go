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
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/routing"
	"drydock.dev/drydock/remediations/signs"
)

func (e *Engine) adopt(ctx context.Context) {
	if err := e.readNodes(ctx); err != nil {
		e.Log.Error(err, "the Nodes cannot be listed; alerts that only this poll found wait for the next poll")
		return
	}
	e.adoptions++
	e.firing, e.unrouted = map[string]time.Time{}, elsewhere{}
	unhealthy := map[string]time.Time{} // nodes whose alerts fire, except nodes whose own signs contradict the fault
	onsets := fleet.Onsets{}
	lost, answered := map[string]alerts.Alert{}, false
	ends := map[[2]string]time.Time{}
	unshown, nodes := map[[2]string]adopted{}, map[[2]string]*corev1.Node{}
	carriers := map[remediations.Kind]func(fingerprint, name string) string{}
	for _, k := range kinds {
		if k.carrier != nil {
			carriers[k.of] = k.carrier(e, ctx)
		}
	}
	for _, r := range e.word.Replicas {
		answered = answered || r.Err == nil
		// The queue may have no room for all alerts. So each poll starts with the next fingerprint,
		// and the alerts without room differ from poll to poll.
		fingerprints := slices.Sorted(maps.Keys(r.Alerts))
		for i := range fingerprints {
			fp := fingerprints[(i+e.adoptions)%len(fingerprints)]
			a := r.Alerts[fp]
			// A silenced alert is written on its Node, so that people see which repairs the silence
			// stops. An inhibited alert is not written: one inhibition may concern all nodes, and
			// would cause a write on each.
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
			case carrier != nil: // a sidecar's alert is not a fault of its host, nor a location's alert a fault of its leader
				route.Node = carrier(fp, route.Name)
			case of != remediations.KindNode: // no Node has alerts about API servers: the rescue handles them
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
			if old, err := remediations.DecodeAlert(alert.Key(), n.Annotations[alert.Key()]); err == nil && e.askedBeforeItsEnd(n, old, alert, ends) {
				continue
			}
			alert, key, since := e.unshown.readopt(n, alert, e.Clock.Now())
			alert, result := e.Adopt(n, alert)
			if !result.Taken() {
				continue
			}
			unshown[key], nodes[key] = adopted{alert, since}, n
			if result == intake.Accepted {
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

// A node whose repair has issued a step counts as unhealthy from the start of the repair. Its alert
// may end and start again while the machine restarts.
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

// denied reports whether the node's own signs were read recently and contradict the alert. Such a
// node does not count as unhealthy: false or forged alerts could otherwise open the breaker, which
// stops repairs of real faults.
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

func (e *Engine) carries(n *corev1.Node, fingerprint, policy string) bool {
	if _, has := n.Annotations[remediations.AlertPrefix+fingerprint]; !has {
		return false
	}
	return slices.ContainsFunc(e.journal(n).Alerts, func(a remediations.Alert) bool {
		return a.Fingerprint == fingerprint && a.Status == remediations.StatusFiring && a.Policy == policy && !a.FromTheFuture(e.Clock.Now())
	})
}

// askedBeforeItsEnd reports whether the last query of Alertmanager began before this process saw
// that the alert has ended. Such an answer cannot contradict the Node. ends has the time of that
// first sight, by the Node's UID and the alert's fingerprint.
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
