package inspect

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/owners"
)

// Said returns the hold that people set on the Node, or nil. The message says why, which program
// set it, and when it ends, as far as that is known.
func (l *Ledger) Said(n *corev1.Node, now time.Time) *Hold {
	if remediations.Excluded(n) {
		return &Hold{Reason: remediations.ReasonExcluded, Message: fmt.Sprintf("the node has the label %s=%s; %s; it does not expire",
			remediations.ExcludeLabel, n.Labels[remediations.ExcludeLabel], setBy(n, "f:labels", remediations.ExcludeLabel))}
	}
	if lifecycle.BreakGlassSet(n) {
		h := &Hold{Reason: remediations.ReasonPaused, Message: fmt.Sprintf("%s is set (%s); %s", remediations.BreakGlassKey, lifecycle.BreakGlassWhy(n), setBy(n, "f:annotations", remediations.BreakGlassKey))}
		if end := l.breakGlassEnds(n); end.IsZero() {
			h.Message += fmt.Sprintf("; it expires %s after Drydock first saw it", text.Age(lifecycle.BreakGlassFor))
		} else {
			h.Until = &end
		}
		h.Message += fmt.Sprintf("; `kubectl drydock resume %s` ends it", n.Name)
		return h
	}
	value, set := n.Annotations[remediations.PauseKey]
	if !set {
		return nil
	}
	p, err := remediations.ParsePause(value)
	h := &Hold{Reason: remediations.ReasonPaused}
	switch {
	case err != nil:
		h.Message = err.Error()
	case !p.Until.IsZero() && !p.Until.After(now):
		return nil
	default:
		why := "no reason was given"
		if p.Why != "" {
			why = p.Why
		}
		h.Message = fmt.Sprintf("paused (%s); %s", why, setBy(n, "f:annotations", remediations.PauseKey))
		if p.Until.IsZero() {
			h.Message += "; it does not expire"
		} else {
			h.Until = &p.Until
		}
	}
	return h
}

// breakGlassEnds returns the zero time if Drydock has not recorded the break-glass yet or the
// ledger cannot be read.
func (l *Ledger) breakGlassEnds(n *corev1.Node) time.Time {
	if l.Status == nil {
		return time.Time{}
	}
	breakGlass := l.Status.BreakGlass[n.Name]
	if breakGlass.Since.IsZero() || breakGlass.Why != lifecycle.BreakGlassWhy(n) {
		return time.Time{}
	}
	return breakGlass.Since.Add(lifecycle.BreakGlassFor)
}

// Setters returns the entries of the Node's managedFields that Said needs: they show who set the
// keys that hold repairs.
func Setters(n *corev1.Node) (out []metav1.ManagedFieldsEntry) {
	said := map[string]string{remediations.PauseKey: "f:annotations", remediations.BreakGlassKey: "f:annotations", remediations.ExcludeLabel: "f:labels"}
	for _, key := range slices.Sorted(maps.Keys(said)) {
		managers, _ := owners.Of(n, "f:metadata", said[key], "f:"+key) // unreadable managedFields name no manager
		out = append(out, managers...)
	}
	return out
}

// setBy names the program that set the key. The Node does not show the person: a program may write
// any name into managedFields.
func setBy(n *corev1.Node, of, key string) string {
	managers, err := owners.Of(n, "f:metadata", of, "f:"+key)
	if err != nil || len(managers) == 0 {
		return "the Node does not show who set it"
	}
	last := managers[0]
	for _, m := range managers {
		if m.Time != nil && (last.Time == nil || m.Time.After(last.Time.Time)) {
			last = m
		}
	}
	says := fmt.Sprintf("set with %s", last.Manager)
	if last.Time != nil {
		says += ", which last changed the Node at " + Stamp(last.Time.Time)
	}
	return says + " (the API server's audit log names the person)"
}

// people adds the hold that people set on the Node, even if no repair waits for it now.
func (s *Observation) people(t *Why) {
	said := s.Ledger.Said(s.Node, s.Now)
	if said == nil {
		return
	}
	says := said.Message
	if until := YetToCome(said.Until, s.Now); until != "" {
		says += ", until " + until
	}
	switch t.State {
	case Well:
		if t.Because != "" {
			says += "; " + t.Because
		}
		t.Because, t.Change = says, s.change(said, "")
	case UnderRepair:
		t.When += "; nothing new starts on the node: " + says
	case Held, Unknown:
	}
}
