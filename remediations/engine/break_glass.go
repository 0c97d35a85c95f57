package engine

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

func (p *pass) expireBreakGlass() {
	if p.ledger == nil {
		return
	}
	was, is, reads := p.ledger.Status.BreakGlass, map[string]ledger.BreakGlass{}, breakGlassReads
	room := ledger.BreakGlassMost - len(was)
	for _, member := range p.roster.BreakGlass() {
		n := member.Node
		breakGlass, why := was[n.Name], lifecycle.BreakGlassWhy(n)
		if breakGlass.Since.IsZero() || breakGlass.Why != why {
			p.announceBreakGlass(n, why, &reads)
			// With a wrong clock, break-glass would expire immediately or never. So its time starts
			// only when the kubelets' leases confirm this replica's clock.
			if p.readHeartbeats(); p.heartbeats == nil || p.heartbeats.ReadAt.Before(p.now) || p.heartbeats.Blind() != "" {
				continue
			}
			if _, known := was[n.Name]; !known {
				if room--; room < 0 {
					continue // the ledger has no room: break-glass holds this node, but its time begins only when other nodes' break-glass has ended
				}
			}
			breakGlass = ledger.BreakGlass{Since: p.now.UTC().Truncate(time.Second), Why: why}
		}
		is[n.Name] = breakGlass
	}
	if maps.Equal(was, is) {
		return
	}
	l := p.ledger.Clone()
	l.Status.BreakGlass = is
	_ = p.save(l)
}

// breakGlassReads bounds the Nodes that one pass reads: a person may set break-glass on all Nodes.
const breakGlassReads = 10

// announceBreakGlass takes the Event's text from the Node in the API server, never from an
// AdmissionReview: any client that reaches the webhook's port can send one.
func (p *pass) announceBreakGlass(n *corev1.Node, why string, reads *int) {
	key := remediations.BreakGlassKey + "=" + why
	if p.remember(n.Name).emitted[key+"|BreakGlassSet"] {
		return
	}
	by, at := "", p.now
	if *reads > 0 {
		*reads--
		manager, changed, err := p.Writer.SetBy(p.ctx, n.Name, remediations.BreakGlassKey)
		if err != nil {
			p.Log.Error(err, "the field manager that set break-glass cannot be read; the Event does not name it", "node", n.Name)
		} else if manager != "" {
			by, at = fmt.Sprintf(" by the field manager %q at %s", manager, changed.Format(time.RFC3339)), changed
		}
	}
	p.emitOnce(n.Name, key, Event{
		Warning: true, Reason: "BreakGlassSet", Action: "BreakGlass at " + at.UTC().Format(time.RFC3339),
		Note: fmt.Sprintf("%s was set%s: %s. While it is set, Drydock starts nothing new on this node, and admission allows every change except changes of Drydock's own keys. The API server's audit log names the user",
			remediations.BreakGlassKey, by, why),
	})
}
