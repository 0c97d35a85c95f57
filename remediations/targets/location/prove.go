package location

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Instead continues to undo the moves. It does not wait for Alertmanager, because undoing depends
// on no alert.
func (s *target) Instead(p *remediations.Policy, now time.Time) (lifecycle.Decision, bool) {
	if s.Record.Back == nil {
		return lifecycle.Decision{}, false
	}
	cause := s.Record.Cause
	return s.goBack(s.Candidate(p, s.AlertBy(cause.Alert), cause, s.Record.Step, now)), true
}

func (s *target) Expired(now time.Time) lifecycle.Decision {
	if h := s.Record.Hold; h != nil && slices.Contains(Unproven, h.Reason) {
		return s.leaveUnproven(now)
	}
	return s.Base.Expired(now)
}

// Well reports whether the location has one leader with an address in the mesh, and answers probes
// from other locations.
func (s *target) Well() (string, bool) {
	g := s.seen
	return fmt.Sprintf("location %s answers", s.Name), g != nil && g.At.After(s.Record.Since) && g.Unknown == "" && g.Settled && g.Reached && s.Elsewhere() == ""
}

// Cure returns Recovered if the node that the repair chose leads the location.
func (s *target) Cure(*remediations.Policy) (remediations.Outcome, string) {
	r, g := s.Record, s.seen
	switch {
	case r.Withheld() || r.Intent.Outcome == remediations.CallRefused:
		return remediations.OutcomeSelfRecovered, "the location answers and the alert is gone, but not by this repair: " + r.Intent.Why
	case g.Leader != r.Intent.Successor:
		return remediations.OutcomeSelfRecovered, fmt.Sprintf("the location answers and the alert is gone, but it is led by %s, and not by %s", g.Leader, r.Intent.Successor)
	}
	return remediations.OutcomeRecovered, fmt.Sprintf("%s cured it: %s leads location %s, which answers, and the alert is gone", remediations.LastDone(r), g.Leader, s.Name)
}

// against returns why no move is allowed. The finding is nil if one is.
func (s *target) against(c *lifecycle.Candidate) (remediations.Reason, *lifecycle.Finding) {
	switch g := s.seen; {
	case g.Unknown != "":
		return remediations.ReasonLeaderUnknown, lifecycle.Because("%s; no data is not a fault", text.Line(g.Unknown, 300))
	case g.Leader == "":
		return remediations.ReasonLeaderUnknown, lifecycle.Because("no node is known to lead location %s; no data is not a fault", s.Name)
	case g.Reached:
		return remediations.ReasonLeaderHeld, lifecycle.Because("location %s is reachable from other locations, so no repair is needed", s.Name)
	case g.Held != "" && c.Spent == "" && (!c.Acted() || g.Misconfigured || len(g.Candidates) > 0):
		return remediations.ReasonLeaderHeld, lifecycle.Because("%s", text.Line(g.Held, 300))
	case g.Unheard != "":
		// No further move is possible, and it is unknown whether the last move helped. Drydock does
		// not undo the move, because missing data is not a reason to undo it.
		return remediations.ReasonLeaderUnknown, lifecycle.Because("%s; no data is not a fault", text.Line(g.Unheard, 300))
	}
	return "", nil
}

// successor returns the move to the best candidate that this repair has not tried and that is not
// under repair. A finding without a reason means that no candidate remains.
func (s *target) successor(c *lifecycle.Candidate) (remediations.Move, remediations.Reason, *lifecycle.Finding) {
	if c.Spent != "" {
		return remediations.Move{}, "", lifecycle.Because("%s", c.Spent)
	}
	g, r := s.seen, s.Record
	refused := maps.Clone(g.Refused)
	if refused == nil {
		refused = map[string]string{}
	}
	var busy []string
	for _, m := range g.Candidates {
		switch err := m.Validate(); {
		case m.To == s.Node.Name, r != nil && slices.Contains(r.Successors(), m.To):
		case err != nil:
			refused[m.To] = err.Error()
		case m.Location != s.Name || m.From != g.Leader:
			refused[m.To] = fmt.Sprintf("the move would be from %s in location %s", m.From, m.Location)
		case s.Fleet.NodeRepairOn(m.To), s.Ledger.ReplacingName(m.To):
			busy = append(busy, m.To)
		default:
			return m, "", nil
		}
	}
	why := lifecycle.Because("no node of location %s can lead instead of %s%s", s.Name, g.Leader, refusals(refused))
	switch {
	case len(busy) > 0:
		return remediations.Move{}, remediations.ReasonNodeUnderRepair, lifecycle.Because("the nodes that could lead location %s instead are under repair: %s", s.Name, text.Line(strings.Join(busy, ", "), 200))
	case c.Acted():
		return remediations.Move{}, "", why
	}
	return remediations.Move{}, remediations.ReasonLeaderHeld, why
}

func refusals(refused map[string]string) string {
	all := ""
	for _, n := range slices.Sorted(maps.Keys(refused)) {
		all += fmt.Sprintf("; %s: %s", n, refused[n])
	}
	return text.Line(all, 260)
}

// Elsewhere returns a message if neither this node nor a node that this repair chose leads.
func (s *target) Elsewhere() string {
	g, r, ours := s.seen, s.Record, s.Node.Name
	if g == nil || g.Unknown != "" || g.Leader == "" || g.Leader == ours || (r != nil && slices.Contains(r.Successors(), g.Leader)) {
		return ""
	}
	if r != nil && len(r.Moves) > 0 {
		ours = r.Intent.Successor
	}
	return fmt.Sprintf("location %s is led by %s, and not by %s", s.Name, g.Leader, ours)
}

// Missing returns what the proof of the cure still lacks.
func (s *target) Missing() string {
	switch g := s.seen; {
	case g == nil || !g.At.After(s.Record.Since):
		return "the location was not observed since the last call"
	case g.Unknown != "":
		return text.Line(g.Unknown, 200)
	case g.Leader != s.Record.Intent.Successor:
		return fmt.Sprintf("%s is not led by %s", s.Name, s.Record.Intent.Successor)
	case !g.Settled:
		return g.Leader + " has no address in the mesh yet, or shares it"
	case !g.Reached:
		return text.Line(g.ReachedWhy, 200)
	}
	return "the alert is still active"
}
