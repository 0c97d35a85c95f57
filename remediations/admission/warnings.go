package admission

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// The only label that people write is ExcludeLabel.
var personsAnnotations = []string{remediations.PauseKey, remediations.RequestKey, remediations.ApproveKey, remediations.CancelKey, remediations.ResetKey, remediations.BreakGlassKey}

func peoplesKeys() string {
	return strings.Join(personsAnnotations, ", ") + ", and the label " + remediations.ExcludeLabel
}

type warning struct {
	reason  Reason
	message string
}

// What Drydock will do, or why it will ignore the change. Events report the same later.
func warnings(c *remediations.Config, ch *Change, nodes func() []*corev1.Node, now time.Time) []warning {
	var out []warning
	add := func(reason Reason, format string, args ...any) {
		out = append(out, warning{reason, fmt.Sprintf(format, args...)})
	}
	if w := wouldCollide(c, ch); w != "" {
		add(ReasonWouldCollide, "%s", w)
	}
	if ch.New == nil {
		return out
	}
	if w := ch.unchecked(); w != "" {
		add(ReasonRightUnchecked, "%s", w)
	}
	if w := uncordonsExhausted(c, ch); w != "" {
		add(ReasonUncordonExhausted, "%s", w)
	}
	written, _ := ch.keys(remediations.Relevant)
	for _, key := range written {
		v, annotation := ch.New.Annotations[key]
		switch {
		case key == remediations.ExcludeLabel && !annotation:
		case !annotation || !slices.Contains(personsAnnotations, key):
			add(ReasonUnreadable, "Drydock does not read %s here; people write the annotations %s", key, peoplesKeys())
		case key == remediations.PauseKey:
			if _, err := remediations.ParsePause(v); err != nil {
				add(ReasonUnreadable, "%v; until then the node is paused", err)
			}
		case key == remediations.ResetKey:
			if err := remediations.ParseReset(v); err != nil {
				add(ReasonUnreadable, "%v", err)
			}
		case key == remediations.BreakGlassKey && strings.TrimSpace(v) == "":
			add(ReasonUnreadable, "%s is set without a reason; please add one", remediations.BreakGlassKey)
		case key == remediations.ApproveKey, key == remediations.CancelKey:
			if j := c.Registry.ReadJournal(ch.New); j.UnderWay(v) == nil {
				add(ReasonUnknownRepair, "%s=%q: %s", key, text.Line(v, 40), repairThere(ch.New, j.Record))
			}
		case key == remediations.RequestKey:
			if reason, message := requestWarning(c, ch.New, v, nodes, now); message != "" {
				add(reason, "%s", message)
			}
		}
	}
	return out
}

// An uncordon does not end an exhausted repair.
func uncordonsExhausted(c *remediations.Config, ch *Change) string {
	if ch.Old == nil || ch.Exempt || ch.ofNode() || !ch.Old.Spec.Unschedulable || ch.New.Spec.Unschedulable {
		return ""
	}
	r := c.Registry.ReadJournal(ch.Old).Record
	if r == nil || r.Phase != remediations.PhaseExhausted {
		return ""
	}
	return fmt.Sprintf("repair %s of node %s has run out of steps: the node takes pods again, and Drydock does not repair it until the repair is reset. If the node is well: kubectl drydock reset %s, or kubectl annotate node %s %s=true",
		r.ID, ch.Old.Name, ch.Old.Name, ch.Old.Name, remediations.ResetKey)
}

func repairThere(n *corev1.Node, r *remediations.Record) string {
	if r == nil {
		return fmt.Sprintf("node %s has no repair in progress; set this annotation only to the id of a running repair", n.Name)
	}
	return fmt.Sprintf("the repair of node %s is %s; set this annotation only to the id of a running repair", n.Name, r.ID)
}

// Both results are empty if the request will be carried out at once.
func requestWarning(c *remediations.Config, n *corev1.Node, v string, nodes func() []*corev1.Node, now time.Time) (Reason, string) {
	request, err := c.ParseRequest(v)
	if err != nil {
		return ReasonUnreadable, err.Error()
	}
	if r := c.Registry.ReadJournal(n).Record; r != nil && r.Phase == remediations.PhaseExhausted {
		return ReasonRequestExhausted, fmt.Sprintf("repair %s of node %s has run out of steps: the request will be refused; set %s=true first, when the node is fixed", r.ID, n.Name, remediations.ResetKey)
	}
	p := c.Requested(request, n)
	switch {
	case p == nil:
		return ReasonRequestIdle, fmt.Sprintf("the request for %s will be refused: %s does not apply to node %s, or is off", request, request, n.Name)
	case p.Mode != remediations.ModeEnforce:
		return ReasonRequestIdle, fmt.Sprintf("the request for %s will be refused, because its mode is observe; an Event says what Drydock would do", request)
	}
	if why := waits(c, p, n, nodes, now); why != "" {
		return ReasonRequestQueued, "the request for " + request + " must wait: " + why
	}
	return "", ""
}

// Why a person's request must wait for other repairs, or "". p is the policy that carries it out.
// It is called only if the first step is disruptive.
func waits(c *remediations.Config, p *remediations.Policy, n *corev1.Node, nodes func() []*corev1.Node, now time.Time) string {
	s := &lifecycle.State{Config: c, Node: n}
	step, _ := s.FirstStep(p, nil)
	if !c.Remediation(step.Name).Disruptive {
		return ""
	}
	f := fleet.New(c, nodes(), &ledger.Ledger{}, func(string) bool { return false }, now)
	if why := f.ControlPlaneBusy(n); why != "" {
		return why
	}
	return f.AtLimit(c, n, c.ProviderAhead(p, step.Index, n), false)
}

// wouldCollide is for observe mode: in enforce mode the change would be denied, because a repair of
// the node would be in flight now.
func wouldCollide(c *remediations.Config, ch *Change) string {
	if ch.Old == nil || ch.Exempt {
		return ""
	}
	r := c.Registry.ReadJournal(ch.Old).Record
	if r == nil || r.Phase != remediations.PhasePending || r.Hold == nil || r.Hold.Reason != remediations.ReasonObserving {
		return ""
	}
	would := &repair{node: ch.Old.Name, record: r}
	for _, rule := range rules {
		if v := rule(ch, would); v != nil && v.override == byBreakGlassOrExempt {
			return fmt.Sprintf("Drydock would %s %s now (repair %s by policy %s); in enforce mode %s would have to wait",
				c.Remediation(r.Step.Name).Verb, ch.Old.Name, r.ID, r.Policy, v.what)
		}
	}
	return ""
}
