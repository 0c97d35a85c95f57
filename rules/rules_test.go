package rules_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/lab/programs"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/rules"
)

// These are the values of the label remediation that do not belong to a policy.
const (
	peopleOnly = "none"
	selfTest   = "drydock-self-test"
)

type rule struct {
	Alert, Expr, For    string
	Keep                string `yaml:"keep_firing_for"`
	Labels, Annotations map[string]string
}

// shipped are the rules by the names of their files without the ending.
func shipped(t *testing.T) map[string]rule {
	t.Helper()
	names, err := rules.Names()
	require.NoError(t, err)
	require.NotEmpty(t, names)
	out := map[string]rule{}
	for _, file := range names {
		text, err := rules.Read(file)
		require.NoError(t, err)
		var content struct {
			Groups []struct {
				Name  string
				Rules []rule
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &content), file)
		require.Len(t, content.Groups, 1, file)
		require.Len(t, content.Groups[0].Rules, 1, "%s: one alert a file", file)
		require.True(t, strings.HasPrefix(content.Groups[0].Name, "drydock-"), "%s: the group's name must tell it from others'", file)
		out[strings.TrimSuffix(file, ".yaml")] = content.Groups[0].Rules[0]
	}
	return out
}

func TestEveryRuleHasATestAndARunbookOfItsName(t *testing.T) {
	all := shipped(t)
	for name, r := range all {
		require.Equal(t, name, r.Alert)
		require.FileExists(t, filepath.Join("tests", name+".yaml"))
		require.FileExists(t, filepath.Join("runbooks", name+".md"))
		require.Equal(t, "https://github.com/drydock-dev/drydock/blob/main/rules/runbooks/"+name+".md", r.Annotations["runbook_url"])
	}
	for _, pattern := range []string{"tests/*.yaml", "runbooks/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			base := filepath.Base(file)
			require.Contains(t, all, strings.TrimSuffix(base, filepath.Ext(base)), "%s is of no rule", file)
		}
	}
}

func TestEveryAlertSaysWhatPeopleAndRoutesNeed(t *testing.T) {
	for name, r := range shipped(t) {
		severities := []string{"warning", "critical"}
		if r.Labels["remediation"] == selfTest {
			severities = []string{"none"}
		}
		if name == "DrydockRepairInProgress" { // it is only information, and must not page a person
			severities = []string{"info"}
		}
		require.Contains(t, severities, r.Labels["severity"], name)
		require.NotEmpty(t, r.Annotations["summary"], name)
		require.NotEmpty(t, r.Annotations["description"], name)
		require.NotContains(t, r.Expr, "unschedulable", "%s: cordoning a node must not end its alert", name)
		if remediation := r.Labels["remediation"]; remediation != peopleOnly && remediation != selfTest {
			require.Contains(t, r.Annotations["summary"], "{{ $labels.", "%s must name its target", name)
			require.Contains(t, r.Expr, "cluster", "%s must say which cluster its target is of", name)
		}
		text, err := os.ReadFile(filepath.Join("runbooks", name+".md"))
		require.NoError(t, err)
		at := 0
		for _, heading := range []string{"# " + name + "\n", "\n## Meaning\n", "\n## Impact\n", "\n## Diagnosis\n", "\n## What Drydock does\n", "\n## Mitigation\n"} {
			i := strings.Index(string(text)[at:], heading)
			require.GreaterOrEqual(t, i, 0, "the runbook of %s: %q is missing or out of its place", name, heading)
			at += i
		}
	}
}

// TestRulesAboutNodesSayHowLongTheyWait: `kubectl drydock why` shows that time for a fault whose
// alert does not fire yet. It is never shorter than the rule's `for`. The control is an alert about
// Drydock itself, whose description names no such time.
func TestRulesAboutNodesSayHowLongTheyWait(t *testing.T) {
	all := shipped(t)
	parsed, err := rules.Shipped()
	require.NoError(t, err)
	require.Len(t, parsed, len(all))
	about := 0
	for _, r := range parsed {
		require.Equal(t, all[r.Alert].Labels, r.Labels, r.Alert)
		if !strings.Contains(all[r.Alert].Annotations["description"], "{{ $labels.node }}") || r.Labels["remediation"] == peopleOnly {
			continue
		}
		about++
		require.NotZero(t, r.Wait(), "%s waits %q", r.Alert, r.Waits)
		atLeast, err := model.ParseDuration(all[r.Alert].For)
		require.NoError(t, err)
		require.GreaterOrEqual(t, r.Wait(), time.Duration(atLeast), r.Alert)
	}
	require.GreaterOrEqual(t, about, 10)
	i := slices.IndexFunc(parsed, func(r rules.Rule) bool { return r.Alert == "DrydockRepairInProgress" })
	require.Empty(t, parsed[i].Waits)
}

// TestEveryRuleLeadsSomewhere: to a policy, only to people, or to the self-test. Each policy has a
// rule.
func TestEveryRuleLeadsSomewhere(t *testing.T) {
	all := shipped(t)
	policies := config.Shipped().Policies
	matches := func(p config.PolicyInfo, r rule) bool {
		set := model.LabelSet{}
		for k, v := range r.Labels {
			set[model.LabelName(k)] = model.LabelValue(v)
		}
		set["alertname"] = model.LabelValue(r.Alert)
		return p.Match.Matches(set)
	}
	for name, r := range all {
		var by []string
		for _, p := range policies {
			if matches(p, r) {
				by = append(by, p.Name)
			}
		}
		switch remediation := r.Labels["remediation"]; remediation {
		case peopleOnly, selfTest:
			require.Empty(t, by, "%s is for no policy", name)
			require.Equal(t, remediation == selfTest, name == "DrydockSelfTest", name)
		default:
			require.NotEmpty(t, by, "no shipped policy takes %s (remediation %s)", name, remediation)
			require.Contains(t, matched(policies), remediation, name)
		}
	}
	for _, p := range policies {
		reached := false
		for _, r := range all {
			reached = reached || matches(p, r)
		}
		require.True(t, reached, "no shipped rule reaches policy %s", p.Name)
	}
}

// matched returns the values of the label remediation that policies match.
func matched(policies []config.PolicyInfo) []string {
	var out []string
	for _, p := range policies {
		for _, m := range p.Match {
			if m.Name == "remediation" && m.Type == labels.MatchEqual {
				out = append(out, m.Value)
			}
		}
	}
	return out
}

// TestTheRulesNameWhatDrydockKnows: a reason or a phase with a typing error would match nothing,
// without any error.
func TestTheRulesNameWhatDrydockKnows(t *testing.T) {
	known := map[string][]string{
		"phase":  {string(remediations.PhaseActing), string(remediations.PhaseVerifying), string(remediations.PhaseExhausted)},
		"reason": {}, "outcome": {},
	}
	for _, o := range remediations.Outcomes {
		known["outcome"] = append(known["outcome"], string(o))
	}
	for _, r := range remediations.Reasons {
		known["reason"] = append(known["reason"], string(r))
	}
	selectors := regexp.MustCompile(`(phase|reason|outcome)(?:=|!=|=~|!~)"([^"]*)"`)
	seen := 0
	for name, r := range shipped(t) {
		for _, m := range selectors.FindAllStringSubmatch(r.Expr, -1) {
			for _, value := range strings.Split(m[2], "|") {
				require.Contains(t, known[m[1]], value, name)
				seen++
			}
		}
	}
	require.Positive(t, seen)
}

// heldOnPurpose are the reasons that DrydockRepairHeldTooLong leaves out: a person or the
// configuration sets them, or they have an alert of their own.
var heldOnPurpose = map[remediations.Reason]string{
	remediations.ReasonObserving: "", remediations.ReasonPaused: "", remediations.ReasonExcluded: "", remediations.ReasonSilenced: "",
	remediations.ReasonOutsideWindow: "",
	remediations.ReasonBlind:         "DrydockBlind", remediations.ReasonWritesDenied: "DrydockBlind", remediations.ReasonStoreWentBack: "DrydockBlind", remediations.ReasonFleetUnhealthy: "DrydockBreakerOpen", remediations.ReasonPolicyFailing: "DrydockPolicyStopped",
}

// firesLate are the reasons that DrydockRepairHeldTooLong reports after four hours.
var firesLate = []remediations.Reason{remediations.ReasonCordonedByOther, remediations.ReasonInhibited}

// TestEachReasonOfAHoldFires, or is left out on purpose. promtool evaluates the rule with a hold
// for each reason that Drydock knows, so that no repair is held for days without an alert.
func TestEachReasonOfAHoldFires(t *testing.T) {
	type m = map[string]any
	all := shipped(t)
	held := all["DrydockRepairHeldTooLong"]
	expected := func(reasons []remediations.Reason) (alerts []m) {
		for _, r := range reasons {
			says := strings.NewReplacer("{{ $labels.policy }}", "p", "{{ $labels.reason }}", string(r))
			annotations := m{}
			for name, text := range held.Annotations {
				annotations[name] = says.Replace(text)
			}
			alerts = append(alerts, m{
				"exp_labels":      m{"cluster": "c", "policy": "p", "reason": string(r), "severity": held.Labels["severity"], "remediation": peopleOnly},
				"exp_annotations": annotations,
			})
		}
		return alerts
	}
	var series []m
	var soon, late []remediations.Reason
	for _, r := range remediations.Reasons {
		cluster := "c"
		if r == remediations.ReasonObserving {
			cluster = "observes" // where Drydock observes, a repair that waits for its turn needs no alert
		}
		series = append(series, m{"series": fmt.Sprintf(`drydock_holds{job="drydock",pod="a",cluster=%q,policy="p",reason=%q}`, cluster, r), "values": "1x300"})
		own, onPurpose := heldOnPurpose[r]
		if own != "" {
			require.Contains(t, all, own, r)
		}
		if onPurpose {
			continue
		}
		if late = append(late, r); !slices.Contains(firesLate, r) {
			soon = append(soon, r)
		}
	}
	require.Len(t, late, len(remediations.Reasons)-len(heldOnPurpose))
	dir := t.TempDir()
	rule, err := filepath.Abs("DrydockRepairHeldTooLong.yaml")
	require.NoError(t, err)
	suite, err := yaml.Marshal(m{"rule_files": []string{rule}, "evaluation_interval": "1m", "tests": []m{{
		"interval": "1m", "input_series": series, "alert_rule_test": []m{
			{"eval_time": "59m", "alertname": held.Alert, "exp_alerts": []m{}},
			{"eval_time": "62m", "alertname": held.Alert, "exp_alerts": expected(soon)},
			{"eval_time": "250m", "alertname": held.Alert, "exp_alerts": expected(late)},
		},
	}}})
	require.NoError(t, err)
	file := filepath.Join(dir, "reasons.yaml")
	require.NoError(t, os.WriteFile(file, suite, 0o600))
	paths, err := programs.Build(t.Context(), os.Stderr, "promtool")
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), paths["promtool"], "test", "rules", file).CombinedOutput()
	require.NoError(t, err, "each reason either fires, or stands in heldOnPurpose:\n%s", out)
}

// TestEachCauseOfBlindnessHasARule: the rule fires for it, and its runbook says what to do.
func TestEachCauseOfBlindnessHasARule(t *testing.T) {
	require.Contains(t, shipped(t)["DrydockBlind"].Expr, `(drydock_blind{job=~"drydock|.+[-/]drydock"}) == 1`, "whatever the cause")
	cases, err := os.ReadFile("tests/DrydockBlind.yaml")
	require.NoError(t, err)
	runbook, err := os.ReadFile("runbooks/DrydockBlind.md")
	require.NoError(t, err)
	for _, cause := range engine.BlindCauses {
		require.Contains(t, string(cases), "exp_labels: {cause: "+cause+",")
		require.Contains(t, string(runbook), "\n- `"+cause+"`: ")
		require.Contains(t, string(runbook), "\n- Cause `"+cause+"`:")
	}
}

// TestMoreCasesStaySilentThanFire: an alert that repairs nodes does more harm if it fires by
// mistake than if it does not fire. A case counts as one that fires if it expects an alert at any
// time.
func TestMoreCasesStaySilentThanFire(t *testing.T) {
	total := map[bool]int{}
	for name := range shipped(t) {
		text, err := os.ReadFile(filepath.Join("tests", name+".yaml"))
		require.NoError(t, err)
		var file struct {
			RuleFiles []string `yaml:"rule_files"`
			Tests     []struct {
				Name   string
				Checks []struct {
					Alertname string
					Alerts    []any `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &file), name)
		require.Contains(t, file.RuleFiles, "../"+name+".yaml")
		cases := map[bool]int{}
		for _, c := range file.Tests {
			require.NotEmpty(t, c.Checks, "%s: %s looks at nothing", name, c.Name)
			fires, looked := false, false
			for _, check := range c.Checks {
				fires = fires || len(check.Alerts) > 0
				looked = looked || check.Alertname == name
			}
			require.True(t, looked, "%s: %s does not look at the alert", name, c.Name)
			cases[fires]++
		}
		require.Positive(t, cases[true], "%s: no case shows that it fires", name)
		if name != "DrydockSelfTest" { // because it always fires
			require.GreaterOrEqual(t, cases[false], cases[true], "%s: silent cases against those that fire", name)
		}
		total[true], total[false] = total[true]+cases[true], total[false]+cases[false]
	}
	require.GreaterOrEqual(t, total[false], total[true])
	t.Logf("%d cases fire, %d stay silent", total[true], total[false])
}
