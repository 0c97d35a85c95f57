package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/remediations"
)

// line is one thing that the ledger says of the fleet.
type line struct {
	// label says what it is about, subject which one of its kind.
	label, subject string
	text           string
	// same is what must differ for the line to count as changed; empty: the text.
	same string
}

func (l line) key() string { return l.label + " " + l.subject }

func (l line) changed(before line) bool { return l.sameness() != before.sameness() }

func (l line) sameness() string {
	if l.same != "" {
		return l.same
	}
	return l.text
}

// lines say whether Drydock runs, and what the ledger says. What depends on when it is said alone counts for no change.
func (s *status) lines(now time.Time) []line { return append(s.Leader.lines(), s.fleet(now)...) }

// fleet is what the ledger says.
func (s *status) fleet(now time.Time) []line {
	name := s.Ledger.Name
	if s.Ledger.Namespace != "" {
		name = s.Ledger.Namespace + "/" + name
	}
	if s.Ledger.Problem != "" {
		return []line{{label: "Ledger", text: name + ": " + s.Ledger.Problem}}
	}
	st := s.Ledger.Status
	out := []line{{label: "Ledger", text: name}}
	switch st.Mode {
	case "":
	case remediations.ModeObserve:
		out = append(out, line{label: "Mode", text: "observe: nothing is done to any node, except by policies that enforce by themselves"})
	default:
		out = append(out, line{label: "Mode", text: string(st.Mode)})
	}
	out = append(out, breakers(st, s.Ill, now)...)
	if st.Blind == "" {
		out = append(out, line{label: "Blind", text: "no"})
	} else {
		out = append(out, line{label: "Blind", text: st.Blind})
	}
	if st.SelfTest.State != "" {
		out = append(out, selfTest(st.SelfTest, s.Ledger.Arrival, now))
	}
	for _, policy := range slices.Sorted(maps.Keys(st.Exhausted)) {
		if s.Ledger.whole.Failing(policy) {
			out = append(out, line{label: "Stopped", subject: policy, text: fmt.Sprintf(
				"policy %s: its last %d repairs all ran out of steps; once the cause is found, `kubectl drydock reset --policy %s`", policy, st.Exhausted[policy], policy)})
		}
	}
	for _, policy := range slices.Sorted(maps.Keys(st.Stopped)) {
		out = append(out, line{label: "Stopped", subject: policy, text: fmt.Sprintf(
			"policy %s: %s; once that is mended, `kubectl annotate node NODE %s=true` on one of its nodes", policy, st.Stopped[policy], remediations.ResetKey)})
	}
	for _, reason := range slices.Sorted(maps.Keys(st.Holds)) {
		out = append(out, line{label: "Held", subject: string(reason), text: fmt.Sprintf("%s: %s", reason, st.Holds[reason])})
	}
	for _, pod := range slices.Sorted(maps.Keys(st.Sidecars)) {
		out = append(out, line{label: "Sidecar", subject: pod, text: fmt.Sprintf(
			"%s ran out of attempts and is not ready; a person must look: `kubectl drydock history %s -o wide`, `kubectl describe pod`", pod, st.Sidecars[pod])})
	}
	for _, node := range slices.Sorted(maps.Keys(st.Glass)) {
		out = append(out, line{label: "Glass", subject: node, same: stamp(st.Glass[node].Since), text: fmt.Sprintf(
			"%s broken since %s: nothing new is issued there; mended after an hour, or by `kubectl drydock resume %s`", node, since(now, st.Glass[node].Since), node)})
	}
	return append(out, line{label: "Limits", text: limits(s.Ledger.Slots, st.Limits)})
}

// selfTest says how the connection to Alertmanager is. That one more alert arrived is no change.
func selfTest(t remediations.SelfTest, arrival *time.Time, now time.Time) line {
	last := "none has arrived yet"
	if arrival != nil {
		last = "last arrival " + since(now, *arrival)
	}
	l := line{label: "SelfTest", same: string(t.State) + " " + t.Message}
	if t.State == remediations.SelfTestOK {
		l.text = fmt.Sprintf("%s, %s", t.State, last)
		return l
	}
	l.text = fmt.Sprintf("%s since %s: %s; %s", t.State, since(now, t.Since), t.Message, last)
	return l
}

func breakers(st *remediations.LedgerStatus, ill map[string][]string, now time.Time) []line {
	var out []line
	if _, ok := st.Breakers[remediations.ScopeCluster]; !ok {
		out = append(out, line{label: "Breaker", subject: remediations.ScopeCluster, text: "cluster closed"})
	}
	for _, scope := range slices.Sorted(maps.Keys(st.Breakers)) {
		b := st.Breakers[scope]
		l := line{label: "Breaker", subject: scope, same: fmt.Sprintf("%s %s %d/%d %s", b.State, stamp(b.Since), b.Unhealthy, b.Nodes, b.Trial)}
		count := fmt.Sprintf("%s %s since %s: %d of %d nodes are unhealthy", scope, b.State, since(now, b.Since), b.Unhealthy, b.Nodes)
		switch b.State {
		case remediations.BreakerHalfOpen:
			trial := "one node is repaired first, and the others wait for how it ends"
			if b.Trial != "" {
				trial = fmt.Sprintf("repair %s goes first, and the others wait for how it ends", b.Trial)
			}
			l.text = count + "; " + trial
		default:
			l.text = fmt.Sprintf("%s; no disruptive repair begins until %s", count, calm(b, st.Limits, now))
		}
		l.text += whoIsIll(ill[scope])
		out = append(out, l)
	}
	return out
}

// maxNamed is how many nodes a line names.
const maxNamed = 10

// whoIsIll names the nodes that a breaker counts, by what can be seen now.
func whoIsIll(ill []string) string {
	switch {
	case len(ill) == 0:
		return ""
	case len(ill) > maxNamed:
		return fmt.Sprintf("; unhealthy now: %s and %d more", strings.Join(ill[:maxNamed], ", "), len(ill)-maxNamed)
	}
	return "; unhealthy now: " + strings.Join(ill, ", ")
}

func since(now, then time.Time) string {
	return fmt.Sprintf("%s (%s ago)", stamp(then), age(now, then))
}

// calm says when an open breaker lets go, as far as the ledger knows.
func calm(b remediations.Breaker, limits map[string]string, now time.Time) string {
	cooldown, err := time.ParseDuration(limits["stormCooldown"])
	if err != nil {
		return fmt.Sprintf("the storm, last seen at %s, has been over for limits.stormCooldown", stamp(b.Quiet))
	}
	if !b.Quiet.Add(cooldown).After(now) {
		return fmt.Sprintf("Drydock has judged the fleet again: the storm was last seen at %s, longer than limits.stormCooldown ago", stamp(b.Quiet))
	}
	return fmt.Sprintf("%s at the earliest, the storm having been last seen at %s", stamp(b.Quiet.Add(cooldown)), stamp(b.Quiet))
}

// limits says which slots are taken, against what is configured.
func limits(slots []remediations.Slot, configured map[string]string) string {
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
