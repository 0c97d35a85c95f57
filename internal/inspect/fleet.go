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

// Line is one line of the status about the whole fleet. Most lines come from the ledger.
type Line struct {
	// Label is the topic, for example "Breaker". Subject is the object of that topic, for example a
	// zone.
	Label, Subject string
	Text           string
	// Calm reports that the state is normal, so that people need not read the line.
	Calm bool
	// same is compared instead of Text, unless it is empty. It leaves out text that changes with the
	// time.
	same string
}

const (
	breakerLabel = "Breaker"
	leaderLabel  = "Leader"
)

// Key identifies the line: it stays the same while the text changes.
func (l Line) Key() string { return l.Label + " " + l.Subject }

// Changed reports whether the line differs from its earlier state. It ignores text that changes
// only because time passes.
func (l Line) Changed(before Line) bool { return l.sameness() != before.sameness() }

// Ended returns the sentence for a line that is no longer in the status.
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

// FirstLines returns the lines before the table of repairs: the cluster, and a warning if no
// replica leads, because the table is then out of date.
func (s *Status) FirstLines() []Line { return slices.Concat(s.Cluster.Lines(), s.Leader.lines()) }

// Lines returns the first lines and the lines from the ledger.
func (s *Status) Lines(now time.Time) []Line {
	return slices.Concat(s.FirstLines(), s.fleet(now), s.paused(now), s.steps())
}

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
		out[0] = Line{Label: "Ledger", Text: fmt.Sprintf("%s: has fields that this plugin does not know: %s; a newer Drydock wrote them, and this version ignores and keeps them", name, strings.Join(fields, ", "))}
	}
	if st.Aside != "" { // another Drydock is in charge, so the rest of this ledger is out of date
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
		out = append(out, Line{Label: "Writes", Subject: "denied", Text: st.Denied + "; no repair starts until the API server accepts these writes"})
	}
	for i, says := range st.Limited {
		out = append(out, Line{Label: "Writes", Subject: fmt.Sprint(i), Text: says})
	}
	for _, node := range slices.Sorted(maps.Keys(st.Unwritten)) {
		out = append(out, Line{Label: "Writes", Subject: node, Text: node + " is not repaired: " + st.Unwritten[node]})
	}
	if b := st.WentBack; b != nil && now.Before(b.Until) {
		out = append(out, Line{Label: "Store", Text: b.Why + "; no disruptive step begins before " + Stamp(b.Until)})
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
			"policy %s: %s; fix this, then `kubectl drydock reset --policy %s`", policy, st.Stopped[policy], text.ShellWord(policy))})
	}
	for _, reason := range slices.Sorted(maps.Keys(st.Holds)) {
		out = append(out, Line{Label: "Held", Subject: string(reason), Text: fmt.Sprintf("%s: %s", reason, st.Holds[reason])})
	}
	for _, pod := range slices.Sorted(maps.Keys(st.Sidecars)) {
		out = append(out, Line{Label: "Sidecar", Subject: pod, Text: fmt.Sprintf(
			"%s is not ready after all attempts of its repair; a person must check the pod: `kubectl drydock history %s -o wide`, `kubectl describe pod`", pod, st.Sidecars[pod])})
	}
	for _, node := range slices.Sorted(maps.Keys(st.BreakGlass)) {
		out = append(out, Line{Label: "Break-glass", Subject: node, same: Stamp(st.BreakGlass[node].Since), Text: fmt.Sprintf(
			"%s has break-glass (%s) since %s: Drydock starts nothing new there until %s, or until `kubectl drydock resume %s`",
			node, st.BreakGlass[node].Why, Since(now, st.BreakGlass[node].Since), Stamp(st.BreakGlass[node].Since.Add(lifecycle.BreakGlassFor)), node)})
	}
	for _, step := range slices.Sorted(maps.Keys(st.Uncovered)) {
		lack := st.Uncovered[step]
		out = append(out, Line{Label: "Unserved", Subject: step, Text: fmt.Sprintf("%s: %d nodes do not have exactly one provider for this step; the first: %s", step, lack.Nodes, lack.First)})
	}
	for _, says := range st.Contested {
		out = append(out, Line{Label: "Others", Subject: says, Text: says})
	}
	return append(out, Line{Label: "Limits", Text: limits(s.Ledger.Slots, s.parked, st.Limits), Calm: true})
}

func (s *Status) steps() (out []Line) {
	if s.StepsUnseen != "" {
		return []Line{{Label: "Steps", Text: fmt.Sprintf("unknown: %s; to see them: `kubectl drydock why NODE --config FILE`", strings.TrimSuffix(s.StepsUnseen, giveConfig))}}
	}
	for _, of := range s.Steps {
		out = append(out, of.Lines(of.Node+": ")...)
	}
	return out
}

// selfTest ignores a further arrival of the test's alert when lines are compared.
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

// admission ignores a further request when lines are compared. In a quiet cluster it is normal that
// no request comes.
func admission(a ledger.Admission, now time.Time) Line {
	if a.Last.IsZero() {
		return Line{Label: "Webhook", Calm: true, same: "none " + Stamp(a.Serving), Text: fmt.Sprintf("no request has reached the webhook of the leading replica since its start at %s; if nodes were cordoned since then, a firewall may block the API server from the port of config.webhook.listen (default 9443): docs/reference/admission.md", Since(now, a.Serving))}
	}
	return Line{Label: "Webhook", same: "some", Calm: true, Text: "the last request reached the webhook of the leading replica at " + Since(now, a.Last)}
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
			trial := "one node is repaired first, and the others wait for the result"
			if b.Trial != "" {
				trial = fmt.Sprintf("repair %s goes first, and the others wait for its result", b.Trial)
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

const maxNamed = 10

func whoIsIll(ill []string) string {
	switch {
	case len(ill) == 0:
		return ""
	case len(ill) > maxNamed:
		return fmt.Sprintf("; unhealthy now: %s and %d more", strings.Join(ill[:maxNamed], ", "), len(ill)-maxNamed)
	}
	return "; unhealthy now: " + strings.Join(ill, ", ")
}

func calm(b ledger.Breaker, limits map[string]string, now time.Time) string {
	cooldown, err := time.ParseDuration(limits["stormCooldown"])
	if err != nil {
		return fmt.Sprintf("limits.stormCooldown has passed since too many nodes were last unhealthy, at %s", Stamp(b.Quiet))
	}
	if !b.Quiet.Add(cooldown).After(now) {
		return fmt.Sprintf("Drydock has counted the unhealthy nodes again: too many nodes were last unhealthy at %s, longer than limits.stormCooldown ago", Stamp(b.Quiet))
	}
	return fmt.Sprintf("%s at the earliest; the time moves while too many nodes are unhealthy (last at %s)", Stamp(b.Quiet.Add(cooldown)), Stamp(b.Quiet))
}

// slots are the repairs in the ledger. parked are drained Nodes that wait for their next step: the
// ledger has no slot for them, but they count against the limits.
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

func countOnce(in map[string]int, places []string) {
	for i, place := range places {
		if place != "" && !slices.Contains(places[:i], place) {
			in[place]++
		}
	}
}
