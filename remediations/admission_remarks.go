package remediations

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// personsAnnotations are the annotations that people write; the one label is ExcludeLabel.
var personsAnnotations = []string{PauseKey, RequestKey, ApproveKey, CancelKey, ResetKey, BreakGlassKey}

func peoplesKeys() string {
	return strings.Join(personsAnnotations, ", ") + ", and the label " + ExcludeLabel
}

// remark is what a person should know of a change that is let through.
type remark struct {
	reason  AdmissionReason
	message string
}

// remarks are about what Drydock will make of the change. They only say now what an Event says later.
func (c *Config) remarks(ch *Change, nodes func() []*corev1.Node, now time.Time) []remark {
	var out []remark
	add := func(reason AdmissionReason, format string, args ...any) {
		out = append(out, remark{reason, fmt.Sprintf(format, args...)})
	}
	if w := wouldCollide(ch); w != "" {
		add(WouldCollide, "%s", w)
	}
	if ch.New == nil {
		return out
	}
	if w := ch.unchecked(); w != "" {
		add(RightUnchecked, "%s", w)
	}
	written, _ := ch.keys(Relevant)
	for _, key := range written {
		v, annotation := ch.New.Annotations[key]
		switch {
		case Owned(key):
		case key == ExcludeLabel && !annotation:
		case !annotation || !slices.Contains(personsAnnotations, key):
			add(Unreadable, "%s is no key that Drydock reads there; people write the annotations %s", key, peoplesKeys())
		case key == PauseKey:
			if _, err := ParsePause(v); err != nil {
				add(Unreadable, "%v; until then the node is paused", err)
			}
		case key == ResetKey:
			if err := ParseReset(v); err != nil {
				add(Unreadable, "%v", err)
			}
		case key == BreakGlassKey && strings.TrimSpace(v) == "":
			add(Unreadable, "%s is set and holds without a reason, too; say why, for those who come later", BreakGlassKey)
		case key == ApproveKey, key == CancelKey:
			j := ReadJournal(ch.New)
			if r := j.Record; (r == nil || r.ID != v) && (j.Leader == nil || j.Leader.ID != v) {
				add(UnknownRepair, "%s=%q: %s", key, clip(v, 40), repairThere(ch.New, r))
			}
		case key == RequestKey:
			if reason, message := c.requestRemark(ch.New, v, nodes, now); message != "" {
				add(reason, "%s", message)
			}
		}
	}
	return out
}

func repairThere(n *corev1.Node, r *Record) string {
	if r == nil {
		return fmt.Sprintf("no repair of node %s is under way; the value is a repair's id", n.Name)
	}
	return fmt.Sprintf("the repair of node %s is %s; the value is a repair's id", n.Name, r.ID)
}

// requestRemark says what will come of a request.
func (c *Config) requestRemark(n *corev1.Node, v string, nodes func() []*corev1.Node, now time.Time) (AdmissionReason, string) {
	request, err := c.ParseRequest(v)
	if err != nil {
		return Unreadable, err.Error()
	}
	if r := ReadJournal(n).Record; r != nil && r.Phase == Exhausted {
		return RequestExhausted, fmt.Sprintf("repair %s of node %s has run out of steps: the request will be refused until somebody has set %s=true", r.ID, n.Name, ResetKey)
	}
	p := c.requested(request, n)
	switch {
	case p == nil:
		return RequestIdle, fmt.Sprintf("%s does not take node %s, or is off: the request will be refused", request, n.Name)
	case p.Mode != ModeEnforce:
		return RequestIdle, fmt.Sprintf("%s only observes: the request will be refused, with what would be done", request)
	}
	s := &State{Config: c, Node: n}
	step, ok := s.firstStep(p)
	if !ok || !Registry[step.Name].Disruptive {
		return "", ""
	}
	f := NewFleet(c, nodes(), &Ledger{}, func(string) bool { return false }, now)
	why := f.controlPlaneBusy(n)
	if why == "" {
		why = f.atLimit(c, n, false)
	}
	if why == "" {
		return "", ""
	}
	return RequestQueued, "the request waits: " + why
}

// wouldCollide says, in observe mode, that a repair would be in flight on the node now.
func wouldCollide(ch *Change) string {
	if ch.Old == nil || ch.Exempt || ch.ofNode() {
		return ""
	}
	r := ReadJournal(ch.Old).Record
	if r == nil || r.Phase != Pending || r.Hold == nil || r.Hold.Reason != Observing {
		return ""
	}
	would := &occupation{node: ch.Old.Name, record: r}
	for _, rule := range admissionRules {
		if o := rule(ch, would); o != nil && o.lift == byGlassOrExempt {
			return fmt.Sprintf("Drydock would %s %s now (repair %s by policy %s); in enforce mode %s would have to wait",
				Registry[r.Step.Name].Verb, ch.Old.Name, r.ID, r.Policy, o.what)
		}
	}
	return ""
}
