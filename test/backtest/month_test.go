package backtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/internal/lab/programs"
	"drydock.dev/drydock/internal/soak"
	"drydock.dev/drydock/remediations"
)

// This is a month at speed: what takes minutes in a cluster takes seconds here, by configuration
// and rules only.
const (
	fleet         = 40
	pollInterval  = time.Second
	policyFor     = 6 * time.Second
	stepWait      = 12 * time.Second
	cooldown      = 5 * time.Second
	stormCooldown = 6 * time.Second
	// ruleFor is the `for` of the rule, and also its keep_firing_for.
	ruleFor = 2 * time.Second
	// cycle is the length of a day in this month. The windows are closed for one minute of it.
	cycle = 3 * time.Minute
	// tooBusy is how late the machine may be in half a minute while the test expects something. A
	// plan that must run out before the windows close has only four seconds to spare.
	tooBusy = 3 * time.Second
)

// month is Drydock's world for a month.
type month struct {
	t     *testing.T
	lab   *lab.Lab
	civo  *lab.Civo
	lived *lived
	began time.Time

	mu       sync.Mutex
	stubborn map[string]bool // nodes that no reboot cures
}

// scaledRules are the shipped rules about a node that is not Ready, evaluated each second and with
// short times.
func scaledRules(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../rules/NodeNotReady.yaml")
	require.NoError(t, err)
	var file struct {
		Groups []map[string]any `json:"groups"`
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	for _, group := range file.Groups {
		group["interval"] = "1s"
		for _, r := range group["rules"].([]any) {
			rule := r.(map[string]any)
			rule["for"], rule["keep_firing_for"] = ruleFor.String(), ruleFor.String()
			rule["expr"] = lab.ShortLooks(rule["expr"].(string))
		}
	}
	text, err = yaml.Marshal(file)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "NodeNotReady.yaml")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// closedFrom returns the first minute with closed windows after that time.
func closedFrom(then time.Time, phase int64) time.Time {
	at := then.Truncate(time.Minute)
	for at.Before(then) || at.Unix()/60%3 != phase {
		at = at.Add(time.Minute)
	}
	return at
}

// windows returns windows that are open except for one minute of each cycle, for as long as the
// longest test takes.
func windows(now time.Time, phase int64) (out []any) {
	at := closedFrom(now, phase).Add(-2 * time.Minute)
	for range 60 {
		out = append(out, map[string]any{"from": at.UTC().Format("15:04"), "to": at.Add(2 * time.Minute).UTC().Format("15:04"), "timezone": "UTC"})
		at = at.Add(cycle)
	}
	return out
}

// configuration returns Drydock's configuration in addition to the lab's own.
func configuration(now time.Time, phase int64) map[string]any {
	return map[string]any{
		"alertmanager": map[string]any{"pollInterval": pollInterval.String()},
		"limits": map[string]any{
			"concurrent": 3, "concurrentPerZone": 3, "concurrentPerPool": 3, "unhealthy": "20%", "stormCooldown": stormCooldown.String(),
			"repairsPerNode": 1000,
		},
		"windows": windows(now, phase),
		"policies": []any{map[string]any{
			"name": "node-not-ready", "match": []any{`remediation="node-not-ready"`}, "for": policyFor.String(), "proofFor": "2s",
			"cooldown": cooldown.String(), "relapseWindow": "0s", "witness": []any{map[string]any{"ready": false}},
			"plan":        []any{map[string]any{"step": "reboot", "wait": stepWait.String(), "attempts": 2}},
			"onExhausted": "cordon",
		}},
	}
}

// event is something that happens at a given time.
type event struct {
	at time.Time
	do func()
}

// day returns the events of one day. closes is when the windows close for a minute.
func (m *month) day(draw *rand.Rand, closes time.Time) (out []event) {
	names := draw.Perm(fleet)
	node := func(i int) string { return fmt.Sprintf("node-%d", names[i]) }
	jitter := func() time.Duration { return time.Duration(draw.IntN(2500)) * time.Millisecond }
	add := func(after time.Duration, do func()) { out = append(out, event{closes.Add(after + jitter()), do}) }
	silent, cured, flaps, silenced, stubborn, paused := node(0), node(1), node(2), node(3), node(4), node(5)
	breakGlass, waits, late, asked, storm := node(6), node(7), node(8), node(9), names[10:20]

	add(-38*time.Second, func() { m.silence(silenced, 80*time.Second) })
	add(-38*time.Second, func() { m.lab.Break(silent) }) // its kubelet falls silent; a reboot brings it back
	add(-37*time.Second, func() { m.annotate(paused, remediations.PauseKey, "true a disk is swapped") })
	add(-35*time.Second, func() { m.fail(cured) })
	for i := range 3 {
		add(time.Duration(14*i-34)*time.Second, func() { m.fail(flaps) })
		add(time.Duration(14*i-24)*time.Second, func() { m.heal(flaps) })
	}
	add(-33*time.Second, func() { m.fail(silenced) })
	add(-3*time.Second, func() { m.heal(silenced) }) // before a replay runs out of steps: three in a row stop a policy
	add(-32*time.Second, func() { m.fail(paused) })
	add(-10*time.Second, func() { m.heal(paused) })
	add(8*time.Second, func() { m.annotate(paused, remediations.PauseKey, "") })
	add(-28*time.Second, func() { m.resists(stubborn, true); m.fail(stubborn) })
	add(20*time.Second, func() { m.resists(stubborn, false); m.heal(stubborn) })
	add(3*time.Second, func() { m.fail(waits) }) // until the window opens
	add(5*time.Second, func() { m.annotate(breakGlass, remediations.BreakGlassKey, "the console is open") })
	add(26*time.Second, func() {
		for _, i := range storm {
			m.fail(fmt.Sprintf("node-%d", i))
		}
	})
	add(44*time.Second, func() {
		for _, i := range storm {
			m.heal(fmt.Sprintf("node-%d", i))
		}
	})
	add(36*time.Second, func() { m.resets(stubborn) })
	add(60*time.Second, func() { m.fail(breakGlass) })
	add(70*time.Second, func() { m.annotate(asked, remediations.RequestKey, "remediation/reboot") })
	add(72*time.Second, func() { m.fail(late) })
	add(87*time.Second, func() { m.heal(breakGlass); m.heal(late); m.heal(silent) })
	add(99*time.Second, func() { m.annotate(breakGlass, remediations.BreakGlassKey, "") })
	slices.SortStableFunc(out, func(a, b event) int { return a.at.Compare(b.at) })
	return out
}

func (m *month) fail(node string) {
	m.try(m.lab.SetCondition(m.t.Context(), node, corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady"))
}

func (m *month) heal(node string) { m.try(m.lab.Heal(m.t.Context(), node, "")) }

func (m *month) resists(node string, is bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stubborn[node] = is
}

// resets informs Drydock, when the last alert of the node has ended, that the node is cured.
func (m *month) resets(node string) {
	require.Eventually(m.t, func() bool {
		n := m.node(node)
		r := remediations.ReadJournal(n).Record
		return r == nil || r.Phase == remediations.PhaseExhausted && remediations.Ready(n) && !fires(n)
	}, lab.Patience, 200*time.Millisecond, "the repair of %s does not run out", node)
	m.annotate(node, remediations.ResetKey, "true")
}

// annotate sets a person's annotation on the Node. An empty value removes it.
func (m *month) annotate(node, key, value string) {
	var is any
	if value != "" {
		is = value
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: is}}})
	m.try(err)
	_, err = m.lab.Client().CoreV1().Nodes().Patch(m.t.Context(), node, apitypes.MergePatchType, patch, metav1.PatchOptions{})
	m.try(err)
}

// silence silences the node's alerts in Alertmanager for that time.
func (m *month) silence(node string, lasts time.Duration) {
	now := time.Now().UTC()
	body, err := json.Marshal(map[string]any{
		"matchers": []any{map[string]any{"name": "node", "value": node, "isRegex": false, "isEqual": true}},
		"startsAt": now, "endsAt": now.Add(lasts), "createdBy": "ada@example.com", "comment": "the fan is swapped",
	})
	m.try(err)
	m.ask(m.lab.AlertmanagerURLs()[0]+"/api/v2/silences", string(body), nil)
}

func (m *month) node(name string) *corev1.Node {
	n, err := m.lab.Client().CoreV1().Nodes().Get(m.t.Context(), name, metav1.GetOptions{})
	m.try(err)
	return n
}

func (m *month) try(err error) {
	m.t.Helper()
	require.NoError(m.t, err)
}

// startMonth starts the cluster and Drydock. It returns since when everything has been calm.
func startMonth(t *testing.T) *month {
	t.Helper()
	m := &month{t: t, stubborn: map[string]bool{}}
	m.lab = lab.New(t, lab.Options{NodeSpecs: lab.CivoNodes(fleet), RuleFiles: []string{scaledRules(t)}, NodeControllers: true})
	token, err := m.lab.PrepareDrydock(t.Context())
	require.NoError(t, err)
	require.NoError(t, programs.Compile(t.Context(), filepath.Join(filepath.Dir(m.lab.DrydockProgram()), "drydock-backtest"), "./cmd/drydock-backtest"))
	m.civo, err = m.lab.StartCivo(t.Context(), lab.CivoOptions{RebootTime: time.Second, Cures: func(in civosim.Instance, _ civosim.Op) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return !m.stubborn[in.Hostname]
	}})
	require.NoError(t, err)
	t.Cleanup(m.civo.Close)
	m.lived = watch(t, m.lab, m.civo)
	return m.run(token)
}

// run starts Drydock.
func (m *month) run(token string) *month {
	now := time.Now()
	phase := now.Add(2*time.Minute).Unix() / 60 % 3
	d, err := m.lab.StartDrydock(m.t.Context(), token, lab.DrydockOptions{Civo: m.civo, Config: configuration(now, phase)})
	require.NoError(m.t, err)
	m.t.Cleanup(d.Kill)
	require.NoError(m.t, m.lab.SetWebhook(m.t.Context(), lab.WebhookTarget{URL: d.ReceiverURL, TokenFile: token}))
	m.lived.leads()
	m.began = time.Now().Truncate(time.Second).Add(time.Second)
	m.lived.config, m.lived.phase = d.ConfigFile, phase
	return m
}

// live runs that many days, and returns when everything that happened in them has ended.
func (m *month) live(draw *rand.Rand, days int) (until time.Time) {
	closes := closedFrom(m.began.Add(40*time.Second), m.lived.phase)
	for range days {
		for _, e := range m.day(draw, closes) {
			select {
			case <-time.After(time.Until(e.at)):
			case <-m.t.Context().Done():
			}
			e.do()
		}
		closes = closes.Add(cycle)
	}
	m.lived.peace()
	return time.Now().Truncate(time.Second)
}

// TestAMonthAtSpeedIsReplayedAsItWasLived uses the real programs. The replay must make the same
// decisions, and each difference must have a cause that the report names.
func TestAMonthAtSpeedIsReplayedAsItWasLived(t *testing.T) {
	seed, days := uint64(21), 1
	switch {
	case soak.Whole():
		seed, days = rand.Uint64(), 8
	case os.Getenv("DRYDOCK_MONTH") == "":
		t.Skip("a busy machine is late, and lives through another month than the one that was meant; make month runs it")
	}
	t.Logf("the seed is %d", seed)
	m := startMonth(t)
	until := m.live(rand.New(rand.NewPCG(seed, seed)), days) //nolint:gosec // the same seed gives the same month
	m.lived.finish(m.began, until)
	m.awaitSamples(until)
	report := m.backtest(until, m.lived.config, "--prometheus", m.lab.PrometheusURL())
	snapshot := lab.ServeTSDB(t, m.snapshot())
	require.Equal(t, report, m.backtest(until, m.lived.config, "--prometheus", snapshot), "a Prometheus over its folder says the same")

	replayed := read(t, report)
	found := compare(m.lived, replayed)
	t.Logf("%d calls live, %d replayed; %d repairs that ended; %d openings\n%s", len(m.lived.acts), len(replayed.acts), len(m.lived.ends),
		len(m.lived.openings), strings.Join(found.explained, "\n"))
	require.Empty(t, found.unexplained, strings.Join(found.unexplained, "\n"))
	for _, c := range found.claimed {
		require.Contains(t, replayed.assumptions, c, "the report says it")
	}
	if late := m.lived.late(); late > tooBusy {
		t.Logf("this machine was late by %s in half a minute: what happened in the month is left to chance, and the controls are left out", late)
		return
	}
	m.happened(replayed, days)
	m.controls(replayed, func(config string) string { return m.backtest(until, config, "--prometheus", m.lab.PrometheusURL()) })
}

// happened asserts that everything the month is meant to contain has happened.
func (m *month) happened(r *replayed, days int) {
	t, l := m.t, m.lived
	require.GreaterOrEqual(t, len(l.acts), 6*days, "calls live")
	require.GreaterOrEqual(t, len(r.acts), 6*days, "calls replayed")
	require.NotEmpty(t, l.openings, "no breaker opened live")
	require.NotEmpty(t, r.openings, "no breaker opened in the replay")
	for _, o := range l.openings {
		require.False(t, o.until.IsZero(), "a breaker stayed open live")
	}
	for _, reason := range []remediations.Reason{
		remediations.ReasonSilenced, remediations.ReasonPaused, remediations.ReasonFleetUnhealthy, remediations.ReasonOutsideWindow,
	} {
		require.True(t, l.everHeld(string(reason)), "%s never held live", reason)
	}
	for _, outcome := range []remediations.Outcome{remediations.OutcomeRecovered, remediations.OutcomeExhausted} {
		require.True(t, slices.ContainsFunc(l.ends, func(e ending) bool { return e.Outcome == outcome }), "no repair ended live as %s", outcome)
	}
}

// controls asserts that the comparison finds differences: other decisions of Drydock, which no
// cause explains, and differences whose cause is missing.
func (m *month) controls(r *replayed, backtest func(config string) string) {
	fails := func(why, what string, l *lived, r *replayed) {
		m.t.Run(why, func(t *testing.T) { require.Regexp(t, "(?m)^"+what, strings.Join(compare(l, r).unexplained, "\n")) })
	}
	text, err := os.ReadFile(m.lived.config)
	require.NoError(m.t, err)
	for _, other := range []struct{ was, is, what string }{
		{"unhealthy: 20%", "unhealthy: 90%", "live alone: breaker cluster "},
		{"wait: " + stepWait.String(), "wait: 40s", `repair \S+ of \S+: live Recovered `},
		{"for: " + policyFor.String(), "for: 25s", `live alone: \S+ reboot:1 `},
		{"attempts: 2", "attempts: 1", `live alone: \S+ reboot:2 `},
		{"windows:", "windows: []", `replayed alone: \S+ reboot:1 `},
	} {
		require.Equal(m.t, 1, strings.Count(string(text), other.was), other.was)
		config := strings.Replace(string(text), other.was, other.is, 1)
		if other.was == "windows:" {
			var c map[string]any
			require.NoError(m.t, yaml.Unmarshal(text, &c))
			delete(c, "windows")
			data, err := yaml.Marshal(c)
			require.NoError(m.t, err)
			config = string(data)
		}
		file := filepath.Join(filepath.Dir(m.lived.config), "other.yaml")
		require.NoError(m.t, os.WriteFile(file, []byte(config), 0o600))
		fails("replayed with "+other.is, other.what, m.lived, read(m.t, backtest(file)))
	}
	alike := compare(m.lived, r).alike
	require.NotEmpty(m.t, alike, "no call was made by both")
	for _, node := range alike {
		fails("live, nothing was done about "+node+", and nothing held it", "replayed alone: "+node+" reboot:1 ", m.lived.without(node), r)
	}
	withoutPeople := *m.lived
	withoutPeople.people = nil
	fails("nobody had silenced or paused anything", `replayed alone: \S+ reboot:1 `, &withoutPeople, r)
	same := *m.lived
	same.boots = nil
	fails("no machine had booted", `repair \S+ of \S+: live Recovered `, &same, r)
}

// backtest returns the report of the real program about the whole month, as JSON.
func (m *month) backtest(until time.Time, config string, from ...string) string {
	m.t.Helper()
	args := append([]string{
		"--config", config, "--rules", filepath.Join(m.lab.Dir(), "rules"), "--alertmanager", filepath.Join(m.lab.Dir(), "alertmanager.yaml"),
		"--since", fmt.Sprintf("%ds", int(until.Sub(m.began).Seconds())), "--until", until.UTC().Format(time.RFC3339), "--resend-delay", "2s", "-o", "json",
	}, from...)
	run := exec.CommandContext(m.t.Context(), m.lab.DrydockProgram(), append([]string{"backtest"}, args...)...)
	var errs bytes.Buffer
	run.Stderr = &errs
	out, err := run.Output()
	require.NoError(m.t, err, errs.String())
	return string(out)
}

// awaitSamples waits until Prometheus has evaluated its rules after that time.
func (m *month) awaitSamples(then time.Time) {
	m.t.Helper()
	require.Eventually(m.t, func() bool {
		var answer struct {
			Data struct{ Result []struct{ Value [2]any } }
		}
		m.ask(m.lab.PrometheusURL()+"/api/v1/query?query=min(timestamp(kube_node_info))", "", &answer)
		if len(answer.Data.Result) == 0 {
			return false
		}
		var last float64
		_, err := fmt.Sscan(fmt.Sprint(answer.Data.Result[0].Value[1]), &last)
		return err == nil && last > float64(then.Unix())+1
	}, lab.Patience, 200*time.Millisecond, "Prometheus scrapes nothing more")
}

// snapshot returns a folder with all data of Prometheus.
func (m *month) snapshot() string {
	m.t.Helper()
	var answer struct {
		Data struct{ Name string }
	}
	m.ask(m.lab.PrometheusURL()+"/api/v1/admin/tsdb/snapshot", "{}", &answer)
	require.NotEmpty(m.t, answer.Data.Name)
	return filepath.Join(m.lab.Dir(), "data", "prometheus", "snapshots", answer.Data.Name)
}

func (m *month) ask(url, body string, into any) {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(m.t.Context(), lab.Patience)
	defer cancel()
	require.NoError(m.t, ask(ctx, url, body, into))
}
