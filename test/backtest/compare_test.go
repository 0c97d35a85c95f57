package backtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/backtest"
)

// replayed is what a backtest says that Drydock would have done, as history went.
type replayed struct {
	backtest.Answer
	acts        []act
	openings    []opening
	assumptions []string
}

// read reads a report.
func read(t *testing.T, report string) *replayed {
	t.Helper()
	var r backtest.Report
	require.NoError(t, json.Unmarshal([]byte(report), &r))
	out := &replayed{Answer: r.Runs[0], assumptions: r.Assumptions}
	require.False(t, out.Curing)
	for _, one := range out.Repairs {
		for _, s := range one.Steps {
			out.acts = append(out.acts, act{node: one.Node, step: s.Name, repair: one.ID, at: s.At})
		}
	}
	slices.SortStableFunc(out.acts, func(a, b act) int { return a.at.Compare(b.at) })
	for _, o := range out.Openings {
		out.openings = append(out.openings, opening{o.Scope, o.From, o.Until})
	}
	return out
}

// held is the reason that held the node at that time; empty: nothing held it.
func (r *replayed) held(node string, at time.Time) string {
	for _, h := range r.HeldNodes {
		if h.Node == node && !h.From.After(at) && h.Until.After(at) {
			return string(h.Reason)
		}
	}
	return ""
}

// inFlight says that a step of the repair was out at that time, give or take.
func inFlight(one *backtest.Repair, at time.Time, before, after time.Duration) bool {
	return len(one.Steps) > 0 && !at.Add(before).Before(one.Steps[0].At) && (one.Over.IsZero() || !at.After(one.Over.Add(after)))
}

// slots are the nodes under repair at that time, without this one.
func (r *replayed) slots(at time.Time, without string) (out []string) {
	for _, one := range r.Repairs {
		if one.Node != without && inFlight(one, at, 0, 0) {
			out = append(out, one.Node)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func isOpen(all []opening, at time.Time) bool {
	return slices.ContainsFunc(all, func(o opening) bool { return !o.from.After(at) && (o.until.IsZero() || o.until.After(at)) })
}

// difference is what only one of the two did, from then until then.
type difference struct {
	said        string
	node        string
	live        bool // the live one did it, and the replay did not
	act         *act
	end         *ended
	opening     *opening
	other       *opening // of the other one, at the same time
	holds       *held
	both        bool // both did it, not at the same time
	from, until time.Time
}

// held is why each of the two held the node meanwhile.
type held struct {
	live     []string
	replayed string
}

// sameTime is how far apart two times may be that are the same: they are kept in whole seconds, and
// what is seen of an object is seen a moment later.
const sameTime = 2 * time.Second

func apart(a, b time.Time) time.Duration { return a.Sub(b).Abs() }

// ended is one repair whose first step both issued at the same time.
type ended struct {
	live     ending
	replayed *backtest.Repair
}

// comparison is what has been found.
type comparison struct {
	l                               *lived
	r                               *replayed
	known                           []*difference // each has its cause
	explained, unexplained, claimed []string
	// alike are the nodes that both made a call for at the same time.
	alike []string
}

// compare holds what was replayed against what was lived, call for call, end for end, hold for
// hold, opening for opening.
func compare(l *lived, r *replayed) *comparison {
	c := &comparison{l: l, r: r}
	var all []*difference
	pairs := map[string]string{} // of repairs: the live one's ID, the replayed one's
	all = append(all, c.calls(pairs)...)
	all = append(all, c.endings(pairs)...)
	all = append(all, c.breakers()...)
	all = append(all, c.holds()...)
	slices.SortStableFunc(all, func(a, b *difference) int { return a.from.Compare(b.from) })
	for pending := all; ; { // a difference may follow from one that is known only later
		var still []*difference
		for _, d := range pending {
			if !c.judge(d) {
				still = append(still, d)
			}
		}
		if len(still) == 0 || len(still) == len(pending) {
			for _, d := range still {
				c.unexplained = append(c.unexplained, d.said)
			}
			return c
		}
		pending = still
	}
}

func (c *comparison) judge(d *difference) bool {
	i := slices.IndexFunc(causes, func(is cause) bool { return is.of(c, d) })
	if i < 0 {
		return false
	}
	c.known = append(c.known, d)
	c.explained = append(c.explained, d.said+": "+causes[i].said)
	if !slices.Contains(c.claimed, causes[i].said) {
		c.claimed = append(c.claimed, causes[i].said)
	}
	return true
}

// calls are those that only one of the two made, and those that it made at another second.
func (c *comparison) calls(pairs map[string]string) (out []*difference) {
	taken := map[int]bool{}
	for _, a := range c.l.acts {
		best := -1
		for i, b := range c.r.acts {
			if !taken[i] && b.node == a.node && b.step == a.step && a.at.Sub(b.at).Abs() <= c.l.lag(a.at) &&
				(best < 0 || a.at.Sub(b.at).Abs() < a.at.Sub(c.r.acts[best].at).Abs()) {
				best = i
			}
		}
		if best < 0 {
			out = append(out, &difference{said: "live alone: " + a.String(), node: a.node, live: true, act: &a, from: a.at, until: a.at})
			continue
		}
		taken[best] = true
		if !slices.Contains(c.alike, a.node) {
			c.alike = append(c.alike, a.node)
		}
		b := c.r.acts[best]
		if pairs[a.repair] = b.repair; apart(a.at, b.at) > sameTime {
			said := fmt.Sprintf("live %s, replayed %s", a, clock(b.at))
			out = append(out, &difference{said: said, node: a.node, act: &a, both: true, from: a.at, until: b.at})
		}
	}
	for i, b := range c.r.acts {
		if !taken[i] {
			out = append(out, &difference{said: "replayed alone: " + b.String(), node: b.node, act: &b, from: b.at, until: b.at})
		}
	}
	return out
}

// endings are the repairs that ended otherwise, or not at the same time.
func (c *comparison) endings(pairs map[string]string) (out []*difference) {
	for _, e := range c.l.ends {
		i := slices.IndexFunc(c.r.Repairs, func(r *backtest.Repair) bool { return r.ID == pairs[e.ID] })
		if i < 0 {
			continue // its calls differ already, or it made none
		}
		r := c.r.Repairs[i]
		if r.Outcome == e.Outcome && apart(r.Over, e.Ended) <= sameTime {
			continue
		}
		said := fmt.Sprintf("repair %s of %s: live %s at %s, replayed %q at %s", e.ID, e.node, e.Outcome, clock(e.Ended), r.Outcome, clock(r.Over))
		out = append(out, &difference{said: said, node: e.node, end: &ended{e, r}, both: r.Outcome == e.Outcome, from: e.Ended, until: r.Over})
	}
	return out
}

// breakers are the openings that only one of the two had, and those that did not end at the same
// time.
func (c *comparison) breakers() (out []*difference) {
	taken := map[int]bool{}
	for _, o := range c.l.openings {
		i := slices.IndexFunc(c.r.openings, func(p opening) bool { return p.scope == o.scope && p.from.Sub(o.from).Abs() <= c.l.lag(o.from) })
		if i < 0 || taken[i] {
			out = append(out, &difference{said: "live alone: " + o.String(), live: true, opening: &o, from: o.from, until: o.until})
			continue
		}
		taken[i] = true
		if p := c.r.openings[i]; apart(p.until, o.until) > sameTime {
			said := "live " + o.String() + ", replayed " + p.String()
			out = append(out, &difference{said: said, both: true, opening: &o, other: &p, from: o.until, until: p.until})
		}
	}
	for i, p := range c.r.openings {
		if !taken[i] {
			out = append(out, &difference{said: "replayed alone: " + p.String(), opening: &p, from: p.from, until: p.until})
		}
	}
	return out
}

// holds are the times when the two held a node for different reasons, for longer than they may be
// apart.
func (c *comparison) holds() (out []*difference) {
	for _, node := range slices.Sorted(maps.Keys(c.l.nodes)) {
		var open *difference
		over := func(at time.Time) {
			if open == nil {
				return
			}
			if open.until = at; at.Sub(open.from) > sameTime {
				open.said += fmt.Sprintf(" from %s until %s", clock(open.from), clock(open.until))
				out = append(out, open)
			}
			open = nil
		}
		for at := c.l.nodes[node][0].at.Truncate(time.Second); at.Before(c.l.until); at = at.Add(time.Second) {
			live, replayed := c.l.held(node, at), c.r.held(node, at)
			same := replayed == "" && len(live) == 0 || slices.Contains(live, replayed)
			said := fmt.Sprintf("%s held: live %q, replayed %q", node, strings.Join(live, ", "), replayed)
			if open != nil && (same || open.said != said) {
				over(at)
			}
			if !same && open == nil {
				open = &difference{said: said, node: node, holds: &held{live, replayed}, from: at}
			}
		}
		over(c.l.until)
	}
	return out
}
