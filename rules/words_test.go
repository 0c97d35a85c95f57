package rules_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
)

// aboutDrydock are the alerts about Drydock itself. Every other alert is about something that
// Drydock could repair.
func aboutDrydock(name string) bool { return strings.HasPrefix(name, "Drydock") }

// noKind is the kind of an alert that no policy takes.
const noKind remediations.Kind = "none"

// kindOf is the kind of target that the alert's policies repair.
func kindOf(r rule) remediations.Kind {
	set := model.LabelSet{"alertname": model.LabelValue(r.Alert)}
	for k, v := range r.Labels {
		set[model.LabelName(k)] = model.LabelValue(v)
	}
	for _, p := range config.Shipped().Policies {
		if p.Match.Matches(set) {
			return p.Kind
		}
	}
	return noKind
}

// TestAlertsAreTrueInObserveMode: by default Drydock only observes, so no description promises a
// repair unconditionally. The description of each alert with a policy ends with the condition, and
// with where to look.
func TestAlertsAreTrueInObserveMode(t *testing.T) {
	condition := regexp.MustCompile(`\. Drydock [^.:]+ only if (?:providers\.kilo\.pairs is true and )?a policy in mode enforce takes this alert: (.+)$`)
	promise := regexp.MustCompile(`Drydock (?:repairs|restarts|moves|marks|reboots|drains|replaces)`)
	look := map[remediations.Kind]string{
		remediations.KindNode:      "kubectl drydock why {{ $labels.node }}",
		remediations.KindSidecar:   "kubectl drydock why {{ $labels.node }}",
		remediations.KindLocation:  "kubectl drydock why LEADER",
		remediations.KindAPIServer: "see Drydock's log", // kubectl gets no answer then
	}
	seen := map[remediations.Kind]int{}
	for name, r := range shipped(t) {
		if aboutDrydock(name) {
			continue
		}
		kind, description := kindOf(r), r.Annotations["description"]
		seen[kind]++
		if kind == noKind {
			require.Contains(t, description, "Drydock does nothing for this alert", name)
			require.NotRegexp(t, promise, description, name)
			continue
		}
		end := condition.FindStringSubmatch(description)
		require.NotNil(t, end, "%s must end with the condition of its repair: %s", name, description)
		require.Equal(t, look[kind], end[1], name)
		require.Len(t, promise.FindAllString(description, -1), 1, "%s promises a repair without the condition: %s", name, description)
	}
	require.GreaterOrEqual(t, seen[remediations.KindNode], 13)
	require.Len(t, seen, len(look)+1, "an alert of each kind, and one that only people take")
}

const (
	// firstOfPolicy is the first chapter of runbooks of alerts that a policy matches. It quotes the
	// first lines that `kubectl drydock why` prints.
	firstOfPolicy = "Does Drydock repair TARGET, or must you? The first line of `kubectl drydock why NODE` is the answer:\n" + `
- ` + "`is under repair` or `is about to be repaired`" + `: wait, and run the command again later.
- ` + "`is not repaired: Observing holds it`" + `: Drydock is in observe mode and changes nothing. REPAIR yourself (Diagnosis, Mitigation).
- ` + "`is not repaired`" + `, for another reason: follow the line ` + "`To change that` of the output, or correct what its line `Why` names" + `.
- Any other answer: Drydock does nothing now. REPAIR yourself.

Without Drydock's kubectl plugin: ` + "`kubectl describe node NODE`" + ` shows Drydock's Events.

` + whatDrydockIs
	// firstOfPeople is the first chapter of runbooks of alerts that only people receive.
	firstOfPeople = "Drydock does nothing for this alert: a person must find the cause. `kubectl drydock why NODE` shows whether Drydock repairs a node for another alert.\n\n" +
		whatDrydockIs
	// whatDrydockIs is for readers who come from an alert and do not know Drydock.
	whatDrydockIs = "Drydock repairs nodes when Prometheus alerts fire. [Concepts](../../docs/concepts.md) shows how, and explains the words.\n"
)

// TestRunbooksBeginWithWhoRepairs: a person who is paged asks first whether Drydock repairs the
// node. The alerts about Drydock itself have no such chapter. APIServerDown has one of its own,
// because kubectl gets no answer then.
func TestRunbooksBeginWithWhoRepairs(t *testing.T) {
	now := time.Now()
	inFlight := &remediations.Record{Phase: remediations.PhaseVerifying, Since: remediations.Instant(now)}
	for quoted, why := range map[string]inspect.Why{
		"is about to be repaired":             {Answer: inspect.Answer{State: inspect.UnderRepair}},
		"is under repair":                     {Answer: inspect.Answer{State: inspect.UnderRepair}, Repairs: []inspect.Repair{{Record: inFlight}}},
		"is not repaired: Observing holds it": {Answer: inspect.Answer{State: inspect.Held, Hold: &inspect.Hold{Reason: remediations.ReasonObserving}}},
		"is not repaired":                     {Answer: inspect.Answer{State: inspect.Held, Hold: &inspect.Hold{Reason: remediations.ReasonSilenced}}},
	} {
		why.Node = "n1"
		require.Contains(t, why.Headline(now), "n1 "+quoted, "what the runbooks quote is what why prints")
		require.Contains(t, firstOfPolicy, "`"+quoted+"`")
	}
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	for name, r := range shipped(t) {
		text, err := os.ReadFile(filepath.Join("runbooks", name+".md"))
		require.NoError(t, err)
		require.Contains(t, string(text), whatDrydockIs, name)
		begins, rest, found := strings.Cut(string(text), "\n## First\n")
		require.Equal(t, !aboutDrydock(name), found, "%s: a chapter First", name)
		if !found {
			continue
		}
		require.Equal(t, "# "+name+"\n", begins, "%s: First comes first", name)
		first, _, found := strings.Cut(rest, "\n## Meaning\n")
		require.True(t, found, name)
		want := firstOfPolicy
		switch kindOf(r) {
		case noKind:
			want = firstOfPeople
		case remediations.KindNode:
			want = strings.NewReplacer("TARGET", "the node", "REPAIR", "Repair the node").Replace(want)
		case remediations.KindSidecar:
			want = strings.NewReplacer("TARGET", "the sidecar", "REPAIR", "Open the gate", "The first line of", "NODE is the node of the pod. The first line of").Replace(want)
		case remediations.KindLocation:
			want = strings.NewReplacer("TARGET", "the location", "REPAIR", "Move the leadership", "The first line of", "Find the node LEADER first (Diagnosis shows how). The first line of", "NODE", "LEADER").Replace(want)
		case remediations.KindAPIServer:
			require.Contains(t, first, "`RepairHeld`", name)
			require.Contains(t, first, "`making the call`", name)
			continue
		}
		require.Equal(t, words(want), words(first), name)
	}
}
