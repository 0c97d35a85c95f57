package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// ahead is how far in the future a recorded time may be, because clocks differ.
const ahead = 2 * time.Minute

type gathered struct {
	*Input
	repairs []Repair
	held    []heldNow
	// unreadable has a sentence for each entry or record that is not counted. full are the nodes whose
	// history is full, so that older repairs may be missing.
	unreadable, full []string
	// collapsed is true if something held repairs from beginning to end. The Node's history keeps only
	// the last of these repairs for each alert.
	collapsed bool
}

type heldNow struct {
	policy string
	reason remediations.Reason
	since  time.Time
}

func gather(in *Input) *gathered {
	g := &gathered{Input: in}
	nodes := slices.Clone(in.Nodes)
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, n := range nodes {
		g.history(n)
		for _, key := range slices.Sorted(maps.Keys(n.Annotations)) {
			if strings.HasPrefix(key, remediations.RepairPrefix) {
				g.record(n, key)
			}
		}
	}
	g.orphans()
	slices.SortStableFunc(g.repairs, func(a, b Repair) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Target, b.Target), cmp.Compare(a.ID, b.ID))
	})
	for i := range g.repairs {
		g.repairs[i].Number = i + 1
	}
	return g
}

func (g *gathered) cannot(format string, args ...any) {
	g.unreadable = append(g.unreadable, fmt.Sprintf(format, args...))
}

func (g *gathered) history(n Node) {
	value := n.Annotations[remediations.HistoryKey]
	if value == "" {
		return
	}
	var raw []json.RawMessage
	if err := json.Unmarshal([]byte(value), &raw); err != nil {
		g.cannot("%s: its annotation %s is not a history in Drydock's format, so none of its repairs is counted", n.Name, remediations.HistoryKey)
		return
	}
	var read []remediations.Entry
	for i, one := range raw {
		var e remediations.Entry
		err := json.Unmarshal(one, &e)
		if err == nil {
			err = g.fault(&e)
		}
		if err != nil {
			g.cannot("%s: entry %d of its history is not counted: %s", n.Name, i+1, text.Line(err.Error(), 200))
			continue
		}
		read = append(read, e)
		if e.Ended.Before(g.From) {
			continue
		}
		g.collapsed = g.collapsed || e.OnlyHeld()
		if e.Outcome == remediations.OutcomeExhausted && slices.ContainsFunc(g.repairs, func(r Repair) bool { return r.Node == n.Name && r.ID == e.ID }) {
			continue // one repair with two entries: it ended a second time when its node was healthy
		}
		g.repairs = append(g.repairs, ended(n.Name, &e))
	}
	if since := remediations.RemembersSince(read); since.After(g.From) {
		g.full = append(g.full, fmt.Sprintf("%s (since %s)", n.Name, Stamp(since)))
	}
}

func (g *gathered) fault(e *remediations.Entry) error {
	switch {
	case e.Began.IsZero() || e.Ended.IsZero():
		return fmt.Errorf("repair %q has no beginning or no end", e.ID)
	case e.Ended.Before(e.Began):
		return fmt.Errorf("repair %q ended at %s, before it began at %s", e.ID, Stamp(e.Ended), Stamp(e.Began))
	case e.Ended.After(g.To.Add(ahead)):
		return fmt.Errorf("repair %q ended at %s, which is in the future by this machine's clock", e.ID, Stamp(e.Ended))
	case e.Policy == "":
		return fmt.Errorf("repair %q names no policy", e.ID)
	case e.Outcome == remediations.OutcomeObserved && e.Would == nil:
		return fmt.Errorf("repair %q was only observed, but does not name the step that would have been issued", e.ID)
	case e.Outcome != remediations.OutcomeObserved && !slices.Contains(remediations.Outcomes, e.Outcome):
		return fmt.Errorf("repair %q has the outcome %q, which this version does not know", e.ID, e.Outcome)
	}
	return nil
}

func ended(node string, e *remediations.Entry) Repair {
	r := Repair{
		ID: e.ID, Node: node, Target: target(e.Target, e.Pod, e.Location), Policy: e.Policy, Outcome: e.Outcome, Steps: append(remediations.Attempts{}, e.Steps...),
		Began: e.Began.UTC(), Ended: e.Ended.UTC(), Seconds: seconds(e.Ended.Sub(e.Began)), Request: e.Request, ByPerson: e.By == remediations.ByPerson,
		ByItself: e.Outcome == remediations.OutcomeSelfRecovered, Why: e.Why,
	}
	if len(e.Steps) > 0 {
		r.acted = Period{r.Began, r.Ended}
	}
	if w := e.Would; w != nil {
		r.Would, r.ByItself = w.Step, w.Unnecessary()
		well := r.Ended
		if !w.WellAt.IsZero() {
			well = w.WellAt
		}
		r.IllSeconds = seconds(max(0, well.Sub(w.IllSince)))
		if w.At.IsZero() || w.At.After(r.Ended) { // the repair ended before the step would have been issued
			return r
		}
		r.acted, r.ticks = Period{w.At.UTC(), r.Ended}, []time.Time{w.At}
	}
	return r
}

func target(name, pod, location string) string {
	switch {
	case pod != "":
		return pod
	case location != "":
		return "leader of " + location
	}
	return name
}

func (g *gathered) record(n Node, key string) {
	r, err := remediations.DecodeRecordOf(key, n.Annotations[key])
	if err != nil {
		g.cannot("%s: its record %s is not counted: %s", n.Name, key, text.Line(err.Error(), 200))
		return
	}
	g.underWay(n.Name, r)
}

func (g *gathered) underWay(node string, r *remediations.Record) {
	if r.Began.After(g.To.Add(ahead)) {
		g.cannot("%s: repair %s on record is not counted: it began at %s, which is in the future by this machine's clock", node, r.ID, Stamp(r.Began))
		return
	}
	pod := ""
	if r.Pod != nil {
		pod = r.Pod.String()
	}
	one := Repair{
		ID: r.ID, Node: node, Target: target(r.Target, pod, r.Location), Policy: r.Policy, Phase: r.Phase, Steps: append(remediations.Attempts{}, r.Done...),
		Began: r.Began.UTC(), Seconds: seconds(max(0, g.To.Sub(r.Began))), Request: r.Cause.Request, Why: r.Note,
	}
	if len(r.Done) > 0 {
		one.acted = Period{one.Began, g.To}
	}
	if r.Intent != nil {
		one.ticks = []time.Time{r.Intent.At}
	}
	if r.Phase == remediations.PhaseExhausted {
		if i := slices.IndexFunc(g.repairs, func(e Repair) bool { return e.Node == node && e.ID == r.ID }); i >= 0 {
			g.repairs[i].NeedsPerson = true // the history already has this repair
			return
		}
		one.NeedsPerson = true
		if r.Since.Before(g.From) { // it ended before the report's period, and was not reset since
			one.acted, one.Steps, one.Request = Period{}, remediations.Attempts{}, ""
		} else if len(r.Done) > 0 {
			one.acted.To = r.Since.UTC()
		}
	}
	if h := r.Hold; h != nil {
		one.Why = string(h.Reason) + ": " + h.Message
		g.held = append(g.held, heldNow{r.Policy, h.Reason, h.Since})
	}
	g.repairs = append(g.repairs, one)
}

// orphans adds the repairs whose Node does not exist now. Only the ledger has them.
func (g *gathered) orphans() {
	if g.Ledger == nil || g.Of != "" {
		return
	}
	for _, o := range g.Ledger.Orphans {
		if !slices.ContainsFunc(g.repairs, func(r Repair) bool { return r.ID == o.Record.ID }) {
			r := o.Record
			r.Phase, r.Note = remediations.PhaseVerifying, "the Node is gone; "+cmp.Or(r.Note, "waiting for the replacement machine")
			g.underWay(o.Node, &r)
		}
	}
}

func seconds(d time.Duration) int64 { return int64(d / time.Second) }
