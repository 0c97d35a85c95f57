package inspect

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/selftest"
)

// Line is one fact about the fleet, from the ledger.
type Line struct {
	// Label names the topic, Subject the object of that topic.
	Label, Subject string
	Text           string
	// Calm: the state is normal, and people need not read the line.
	Calm bool
	// same is compared to decide whether the line has changed. Empty: the text is.
	same string
}

// breakerLabel and leaderLabel are labels whose end has words of its own.
const (
	breakerLabel = "Breaker"
	leaderLabel  = "Leader"
)

// Key identifies the line's subject. It stays the same while the text changes.
func (l Line) Key() string { return l.Label + " " + l.Subject }

// Changed reports whether something other than the time differs from the earlier line.
func (l Line) Changed(before Line) bool { return l.sameness() != before.sameness() }

// Ended says that the line's fact no longer holds.
func (l Line) Ended() string {
	switch l.Label {
	case breakerLabel:
		return l.Label + ": " + l.Subject + " closed"
	case leaderLabel:
		return l.Label + ": a replica leads"
	}
	return strings.Join(strings.Fields(l.Label+": "+l.Subject+" ended"), " ")
}

func (l Line) sameness() string {
	if l.same != "" {
		return l.same
	}
	return l.Text
}

// FirstLines returns which cluster was read, and whether no replica leads. They stand before the
// table of repairs, because without a leader the table is old.
func (s *Status) FirstLines() []Line { return slices.Concat(s.Cluster.Lines(), s.Leader.lines()) }

// Lines returns the first lines, and what the ledger holds. Text that changes only with the time
// does not count as a change.
func (s *Status) Lines(now time.Time) []Line {
	return slices.Concat(s.FirstLines(), s.fleet(now), s.paused(now), s.steps())
}

// fleet returns the lines from the ledger.
func (s *Status) fleet(now time.Time) []Line {
	name := s.Ledger.Name
	if s.Ledger.Namespace != "" {
		name = s.Ledger.Namespace + "/" + name
	}
	if s.Ledger.Problem != "" {
		return []Line{{Label: "Ledger", Text: name + ": " + s.Ledger.Problem}}
	}
	st := s.Ledger.Status
	out := []Line{{Label: "Ledger", Text: name, Calm: true}}
	if fields := s.Ledger.Whole.UnknownFields(); len(fields) > 0 {
		out[0] = Line{Label: "Ledger", Text: fmt.Sprintf("%s: has fields that this plugin does not know: %s; Drydock keeps them, and an older Drydock does not look at them", name, strings.Join(fields, ", "))}
	}
	if st.Aside != "" { // the rest of this ledger is outdated
		return append(out, Line{Label: "Charge", Text: st.Aside + "; this Drydock changes nothing in the cluster"})
	}
	switch st.Mode {
	case "":
	case remediations.ModeObserve:
		out = append(out, Line{Label: "Mode", Text: "observe: Drydock changes no node, except by policies with their own mode: enforce"})
	default:
		out = append(out, Line{Label: "Mode", Text: string(st.Mode), Calm: st.Mode == remediations.ModeEnforce})
	}
	out = append(out, breakers(st, s.Ill, now)...)
	if st.Blind == "" {
		out = append(out, Line{Label: "Blind", Text: "no", Calm: true})
	} else {
		out = append(out, Line{Label: "Blind", Text: "yes: " + st.Blind})
	}
	if st.Denied != "" {
		out = append(out, Line{Label: "Writes", Subject: "denied", Text: st.Denied + "; no repair starts until the API server takes these writes"})
	}
	for i, says := range st.Limited {
		out = append(out, Line{Label: "Writes", Subject: fmt.Sprint(i), Text: says})
	}
	for _, node := range slices.Sorted(maps.Keys(st.Unwritten)) {
		out = append(out, Line{Label: "Writes", Subject: node, Text: node + " is not repaired: " + st.Unwritten[node]})
	}
	if b := st.WentBack; b != nil && now.Before(b.Until) {
		out = append(out, Line{Label: "Store", Text: b.Why + "; nothing that disrupts begins before " + Stamp(b.Until)})
	}
	if st.SelfTest.State != "" {
		out = append(out, selfTest(st.SelfTest, s.Ledger.Arrival, now))
	}
	if a := st.Admission; a != nil {
		out = append(out, admission(*a, now))
	}
	for _, policy := range slices.Sorted(maps.Keys(st.Exhausted)) {
		if s.Ledger.Whole.Failing(policy) {
			out = append(out, Line{Label: "Stopped", Subject: policy, Text: fmt.Sprintf(
				"policy %s: its last %d repairs failed; find the cause, then `kubectl drydock reset --policy %s`", policy, st.Exhausted[policy], text.ShellWord(policy))})
		}
	}
	for _, policy := range slices.Sorted(maps.Keys(st.Stopped)) {
		out = append(out, Line{Label: "Stopped", Subject: policy, Text: fmt.Sprintf(
			"policy %s: %s; once that is fixed, `kubectl drydock reset --policy %s`", policy, st.Stopped[policy], text.ShellWord(policy))})
	}
	for _, reason := range slices.Sorted(maps.Keys(st.Holds)) {
		out = append(out, Line{Label: "Held", Subject: string(reason), Text: fmt.Sprintf("%s: %s", reason, st.Holds[reason])})
	}
	for _, pod := range slices.Sorted(maps.Keys(st.Sidecars)) {
		out = append(out, Line{Label: "Sidecar", Subject: pod, Text: fmt.Sprintf(
			"%s ran out of attempts and is not ready; a person must look: `kubectl drydock history %s -o wide`, `kubectl describe pod`", pod, st.Sidecars[pod])})
	}
	for _, node := range slices.Sorted(maps.Keys(st.BreakGlass)) {
		out = append(out, Line{Label: "Break-glass", Subject: node, same: Stamp(st.BreakGlass[node].Since), Text: fmt.Sprintf(
			"%s has break-glass (%s) since %s: nothing new is begun there; it ends at %s, or by `kubectl drydock resume %s`",
			node, st.BreakGlass[node].Why, Since(now, st.BreakGlass[node].Since), Stamp(st.BreakGlass[node].Since.Add(lifecycle.BreakGlassFor)), node)})
	}
	for _, step := range slices.Sorted(maps.Keys(st.Uncovered)) {
		lack := st.Uncovered[step]
		out = append(out, Line{Label: "Unserved", Subject: step, Text: fmt.Sprintf("%s: nodes without a single provider for it: %d; the first: %s", step, lack.Nodes, lack.First)})
	}
	for _, says := range st.Contested {
		out = append(out, Line{Label: "Others", Subject: says, Text: says})
	}
	return append(out, Line{Label: "Limits", Text: limits(s.Ledger.Slots, s.parked, st.Limits), Calm: true})
}

// steps returns which provider would carry out each step for the requested nodes.
func (s *Status) steps() (out []Line) {
	if s.StepsUnseen != "" {
		return []Line{{Label: "Steps", Text: fmt.Sprintf("not known; %s; `kubectl drydock why NODE --config FILE` says them", strings.TrimSuffix(s.StepsUnseen, giveConfig))}}
	}
	for _, of := range s.Steps {
		out = append(out, of.Lines(of.Node+": ")...)
	}
	return out
}

// selfTest returns the state of the connection to Alertmanager. One more alert that arrived does
// not count as a change.
func selfTest(t selftest.Result, arrival *time.Time, now time.Time) Line {
	last := "none has arrived yet"
	if arrival != nil {
		last = "last arrival " + Since(now, *arrival)
	}
	l := Line{Label: "SelfTest", same: string(t.State) + " " + t.Message}
	if t.State == selftest.OK {
		l.Text, l.Calm = fmt.Sprintf("%s, %s", t.State, last), true
		return l
	}
	l.Text = fmt.Sprintf("%s since %s: %s; %s", t.State, Since(now, t.Since), t.Message, last)
	return l
}

// admission returns when a request last reached the webhook of the leading replica. One more
// request does not count as a change. No requests are normal in a quiet cluster.
func admission(a ledger.Admission, now time.Time) Line {
	if a.Last.IsZero() {
		return Line{Label: "Webhook", Calm: true, same: "none " + Stamp(a.Serving), Text: fmt.Sprintf("no request has come to the webhook of the leading replica since it began to serve at %s; if nodes were cordoned since, a firewall may keep the API server from the port of config.webhook.listen (default 9443): docs/reference/admission.md", Since(now, a.Serving))}
	}
	return Line{Label: "Webhook", same: "some", Calm: true, Text: "the last request came to the webhook of the leading replica at " + Since(now, a.Last)}
}

func breakers(st *ledger.Status, ill map[string][]string, now time.Time) []Line {
	var out []Line
	if _, ok := st.Breakers[ledger.ScopeCluster]; !ok {
		out = append(out, Line{Label: breakerLabel, Subject: ledger.ScopeCluster, Text: "cluster closed", Calm: true})
	}
	for _, scope := range slices.Sorted(maps.Keys(st.Breakers)) {
		b := st.Breakers[scope]
		l := Line{Label: breakerLabel, Subject: scope, same: fmt.Sprintf("%s %s %d/%d %s", b.State, Stamp(b.Since), b.Unhealthy, b.Nodes, b.Trial)}
		count := fmt.Sprintf("%s %s since %s: %d of %d nodes are unhealthy", scope, b.State, Since(now, b.Since), b.Unhealthy, b.Nodes)
		switch b.State {
		case ledger.BreakerHalfOpen:
			trial := "one node is repaired first, and the others wait for how it ends"
			if b.Trial != "" {
				trial = fmt.Sprintf("repair %s goes first, and the others wait for how it ends", b.Trial)
			}
			l.Text = count + "; " + trial
		default:
			l.Text = fmt.Sprintf("%s; no disruptive repair begins until %s", count, calm(b, st.Limits, now))
		}
		l.Text += whoIsIll(ill[scope])
		out = append(out, l)
	}
	return out
}

// maxNamed is how many nodes a line names.
const maxNamed = 10

// whoIsIll names the nodes that a breaker counts now.
func whoIsIll(ill []string) string {
	switch {
	case len(ill) == 0:
		return ""
	case len(ill) > maxNamed:
		return fmt.Sprintf("; unhealthy now: %s and %d more", strings.Join(ill[:maxNamed], ", "), len(ill)-maxNamed)
	}
	return "; unhealthy now: " + strings.Join(ill, ", ")
}

// calm returns when an open breaker closes, as far as the ledger shows.
func calm(b ledger.Breaker, limits map[string]string, now time.Time) string {
	cooldown, err := time.ParseDuration(limits["stormCooldown"])
	if err != nil {
		return fmt.Sprintf("the storm, last seen at %s, has been over for limits.stormCooldown", Stamp(b.Quiet))
	}
	if !b.Quiet.Add(cooldown).After(now) {
		return fmt.Sprintf("Drydock has judged the fleet again: the storm was last seen at %s, longer than limits.stormCooldown ago", Stamp(b.Quiet))
	}
	return fmt.Sprintf("%s at the earliest; that time moves while too many nodes are unhealthy, last seen at %s", Stamp(b.Quiet.Add(cooldown)), Stamp(b.Quiet))
}

// limits returns the occupied slots next to the configured limits. A parked Node counts without a
// slot.
func limits(slots []ledger.Slot, parked []place, configured map[string]string) string {
	var nodes, locations []string
	zones, pools := map[string]int{}, map[string]int{}
	for _, s := range slots {
		if s.Kind == remediations.KindLocation {
			locations = append(locations, s.Location)
			continue
		}
		nodes = append(nodes, s.Node)
		if s.Zone != "" {
			zones[s.Zone]++
		}
		if s.Pool != "" {
			pools[s.Pool]++
		}
	}
	for _, p := range parked {
		if slices.Contains(nodes, p.node) {
			continue
		}
		nodes = append(nodes, p.node+" drained and waiting")
		countOnce(zones, p.zones)
		countOnce(pools, p.pools)
	}
	slices.Sort(nodes)
	of := func(n int, key string) string {
		if limit := configured[key]; limit != "" {
			return fmt.Sprintf("%d of %s", n, limit)
		}
		return fmt.Sprint(n)
	}
	all := "cluster " + of(len(nodes), "concurrent")
	if len(nodes) > 0 {
		all += " (" + strings.Join(nodes, ", ") + ")"
	}
	out := []string{all}
	for _, zone := range slices.Sorted(maps.Keys(zones)) {
		out = append(out, fmt.Sprintf("zone %s %s", zone, of(zones[zone], "concurrentPerZone")))
	}
	for _, pool := range slices.Sorted(maps.Keys(pools)) {
		out = append(out, fmt.Sprintf("pool %s %s", pool, of(pools[pool], "concurrentPerPool")))
	}
	if len(locations) > 0 {
		slices.Sort(locations)
		out = append(out, fmt.Sprintf("mesh leaders %d (%s)", len(locations), strings.Join(locations, ", ")))
	}
	if share := configured["unhealthy"]; share != "" {
		out = append(out, "breaker at "+share+" unhealthy")
	}
	return strings.Join(out, ", ")
}

// countOnce adds one to each distinct place. Empty places do not count.
func countOnce(in map[string]int, places []string) {
	for i, place := range places {
		if place != "" && !slices.Contains(places[:i], place) {
			in[place]++
		}
	}
}
