package scene

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/signs"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// Read decodes a scene. An unknown field is an error: a scene with a typing error would test
// something else.
func Read(t testing.TB, text []byte) *Scene {
	t.Helper()
	s := &Scene{}
	require.NoError(t, yaml.UnmarshalStrict(Moments(t, text), s))
	return s
}

// Moments replaces the relative times in a scene (<now-5m>) with absolute times.
func Moments(t testing.TB, text []byte) []byte {
	t.Helper()
	return NowPattern.ReplaceAllFunc(text, func(m []byte) []byte {
		at := Noon
		if sub := NowPattern.FindSubmatch(m)[1]; len(sub) > 0 {
			d, err := time.ParseDuration(string(sub))
			require.NoError(t, err)
			at = at.Add(d)
		}
		return []byte(at.Format(time.RFC3339))
	})
}

func Ago(text, otherwise string) time.Time { return Noon.Add(-Span(text, otherwise)) }

func Span(text, otherwise string) time.Duration {
	if text == "" {
		text = otherwise
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

// State returns the scene as the input of a decision.
func (sc *Scene) State(t testing.TB) *lifecycle.State {
	t.Helper()
	c := sc.Config(t)
	c.Announce = sc.Announce
	n := sc.TheNode(t)
	s := &lifecycle.State{
		Config: c, Node: n, Journal: remediations.ReadJournal(n), Snapshot: sc.Said(), Call: sc.Call, NewID: "new1",
		Ledger: &ledger.Ledger{Repairs: map[string][]ledger.Begun{}, Slots: sc.Ledger.Slots, Wide: sc.Ledger.Wide, Orphans: sc.Ledger.Orphans, Status: ledger.Status{Breakers: sc.Ledger.Breakers, Exhausted: sc.Ledger.Exhausted, Stopped: sc.Ledger.Stopped}},
	}
	s.Survey, s.Behind, s.Denied = sc.Survey.survey(), sc.Behind, sc.Denied
	if r := sc.Replacement; r != nil {
		s.Replacement = &remediations.Replacement{Asked: Asked(s, r.Intent, r.Asked), MachineGone: r.MachineGone, NoneNeeded: r.NoneNeeded, Missing: r.Missing, Blocked: r.Blocked, Successors: r.Successors}
		if r.Successors == nil {
			s.Replacement.Successors = []string{n.Spec.ProviderID}
		}
	}
	if r := sc.Pods; r != nil {
		s.Pods = &remediations.PodProof{Asked: Asked(s, r.Intent, r.Asked), Missing: r.Missing}
	}
	for i, age := range sc.Ledger.Begun {
		s.Ledger.Repairs[ledger.Machine(n)] = append(s.Ledger.Repairs[ledger.Machine(n)], ledger.Begun{Repair: fmt.Sprintf("old%d", i), At: Ago(age, "")})
	}
	if sc.Ledger.Mine != "" {
		s.Ledger.Repairs[ledger.Machine(n)] = append(s.Ledger.Repairs[ledger.Machine(n)], ledger.Begun{Repair: sc.Ledger.Mine, At: Noon})
	}
	if sc.Ledger.BreakGlassFor != "" {
		s.Ledger.Status.BreakGlass = map[string]ledger.BreakGlass{n.Name: {Since: Ago(sc.Ledger.BreakGlassFor, ""), Why: cmp.Or(sc.Ledger.BreakGlassWhy, n.Annotations[remediations.BreakGlassKey])}}
	}
	if sc.Ledger.WentBack != "" {
		s.Ledger.Status.WentBack = &ledger.WentBack{Why: "the API server's store went back: Node n1 has resourceVersion 100, and had 200 before", Until: Noon.Add(Span(sc.Ledger.WentBack, ""))}
	}
	s.Ledger.Unseen = sc.Ledger.Unseen
	if sc.Ledger.Cures != nil {
		s.Ledger.Cures = map[string][]ledger.Cure{ledger.Machine(n): sc.Ledger.Cures}
	}
	had := s.Ledger
	switch {
	case sc.Ledger.Unreadable != "":
		s.Ledger, s.LedgerErr = nil, errors.New(sc.Ledger.Unreadable)
	case sc.Ledger.Malformed != "":
		s.Ledger, s.LedgerErr = nil, fmt.Errorf("%w: %s", ledger.ErrMalformed, sc.Ledger.Malformed)
	}
	s.Fleet = fleet.New(c, append(sc.OtherNodes(), n), had, func(string) bool { return false }, Noon)
	if p := c.Policy("node-not-ready"); p != nil {
		onsets := fleet.Onsets{}
		for _, one := range append([]*corev1.Node{n}, sc.OtherNodes()[:sc.Fleet.Common]...) {
			onsets.Add(p, one.Name, Noon.Add(-10*time.Minute))
		}
		s.Fleet.Begin(onsets)
	}
	if sc.Beats.Read != "never" {
		s.Heartbeats = &signs.Heartbeats{ReadAt: Ago(sc.Beats.Read, "1s"), Nodes: 10, Stale: sc.Beats.Stale}
	}
	if sc.Word.Asked != "never" {
		s.LookSince = Ago(sc.Word.Asked, "3s")
	}
	if sc.WellFor != "" {
		s.WellSince, s.WellHeard = Ago(sc.WellFor, ""), alerts.Heard{}
		if s.Snapshot != nil {
			for _, r := range s.Snapshot.Replicas {
				s.WellHeard[r.URL] = Ago(sc.WatchdogAge, "1m30s")
			}
		}
	}
	for text, said := range sc.Read {
		if s.Read == nil {
			s.Read = map[signs.Sign]signs.Testimony{}
		}
		s.Read[SignOf(text)] = signs.Testimony{Answer: said.Answer, Saw: fmt.Sprintf("%s is %s", text, said.Answer), At: Ago(said.Asked, "1s")}
	}
	if sc.Lease != nil {
		s.Lease = &signs.Lease{ReadAt: Ago(sc.Lease.Read, "0s"), RenewedAt: Ago(sc.Lease.Renewed, "4s"), Duration: 40 * time.Second, Unread: sc.Lease.Unread}
		if s.Lease.Unread != "" {
			s.Lease.RenewedAt = time.Time{}
		}
	}
	return s
}

// Asked returns the intent that a question to the provider was about, and when it was asked. An
// empty intent means that of the node's record or, without one, of the first orphan, a repair whose
// Node is gone.
func Asked(s *lifecycle.State, intent, age string) remediations.Asked {
	switch {
	case intent != "":
	case s.Journal.Record != nil && s.Journal.Record.Intent != nil:
		intent = s.Journal.Record.Intent.ID
	case len(s.Ledger.Orphans) > 0:
		intent = s.Ledger.Orphans[0].Record.Intent.ID
	}
	return remediations.Asked{Intent: intent, At: Ago(age, "1s")}
}

// Kinds are the kinds of targets other than nodes.
var Kinds = []*remediations.TargetKind{&location.Kind, &sidecar.Kind}

// Config is the configuration for the decisions.
func (sc *Scene) Config(t testing.TB) *remediations.Config {
	c := &remediations.Config{
		Kinds: Kinds,
		Limits: remediations.Limits{
			Concurrent: remediations.Quantity{Value: max(sc.Limits.Concurrent, 1)}, ConcurrentPerZone: remediations.Quantity{Value: 9}, ConcurrentPerPool: remediations.Quantity{Value: 9},
			ZoneLabel: "zone", PoolLabels: []string{"pool"}, Unhealthy: remediations.Quantity{Value: 20, Percent: true},
			RepairsPerNode: max(sc.Limits.RepairsPerNode, 1), RepairsWindow: 24 * time.Hour,
			StormCooldown: 10 * time.Minute, StartupGrace: 10 * time.Minute,
			CommonCause: remediations.CommonCause{Nodes: 3, Within: 5 * time.Minute},
		},
		Mode: remediations.ModeEnforce, MaxStaleness: 30 * time.Second, Watchdog: true, RequireAll: sc.RequireAll, Provided: map[string]bool{"reboot": true},
		ClusterWide: remediations.ClusterWide{MinNodes: cmp.Or(sc.MinNodes, 3), MinShare: remediations.Quantity{Value: 30, Percent: true}},
	}
	for _, w := range sc.Windows {
		var from, to remediations.WallTime
		_, err := fmt.Sscanf(w, "%d:%d-%d:%d", &from.Hour, &from.Minute, &to.Hour, &to.Minute)
		require.NoError(t, err)
		c.Windows = append(c.Windows, remediations.Window{From: from, To: to, Location: time.UTC})
	}
	if sc.Provided != nil {
		c.Provided = map[string]bool{}
		for _, p := range sc.Provided {
			c.Provided[p] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sc.Providers)) {
		c.Providers = append(c.Providers, remediations.Provider{Name: name, Scheme: sc.Providers[name], Steps: slices.Sorted(maps.Keys(c.Provided)), PromisesNone: sc.PromisesNone})
	}
	if sc.Policy.Gone {
		return c
	}
	m, err := labels.NewMatcher(labels.MatchEqual, "remediation", "node-not-ready")
	require.NoError(t, err)
	p := &remediations.Policy{
		Name: "node-not-ready", Match: labels.Matchers{m}, Labels: []string{"node"}, Mode: remediations.ModeEnforce,
		For: Span(sc.Policy.For, "2m"), ProofFor: Span(sc.Policy.ProofFor, "30s"), Cooldown: Span(sc.Policy.Cooldown, "5m"), RelapseWindow: Span(sc.Policy.RelapseWindow, "0s"),
		RepairCordoned: sc.Policy.RepairCordoned, Approval: sc.Policy.Approval, CordonExhausted: sc.Policy.OnExhausted != "none",
	}
	p.Witness = WitnessOf(sc.Policy.Witness)
	if sc.Policy.Mode != "" {
		p.Mode, c.Mode = sc.Policy.Mode, sc.Policy.Mode
	}
	plan := sc.Policy.Plan
	if plan == nil {
		plan = []string{"reboot 2"}
	}
	p.Plan = Steps(t, plan)
	if sc.Policy.NodeSelector != "" {
		p.NodeSelector, err = k8slabels.Parse(sc.Policy.NodeSelector)
		require.NoError(t, err)
	}
	c.Policies = []*remediations.Policy{p}
	for _, o := range sc.Others {
		other := *p
		other.Name, other.Plan = o.Name, Steps(t, o.Plan)
		if o.Mode != "" {
			other.Mode = o.Mode
		}
		c.Policies = append(c.Policies, &other)
	}
	return c
}

func Steps(t testing.TB, plan []string) (out []remediations.Step) {
	for _, step := range plan {
		st := remediations.Step{Wait: 10 * time.Minute, Timeout: 30 * time.Minute, Attempts: 1}
		step, st.ContinueOnTimeout = strings.CutSuffix(step, " continue")
		step, st.ContinueUnreachable = strings.CutSuffix(step, " continueUnreachable")
		if n, _ := fmt.Sscanf(step, "%s %d", &st.Name, &st.Attempts); n == 0 {
			t.Fatalf("step %q", step)
		}
		if name, of, ok := strings.Cut(st.Name, "="); ok {
			st.Name = name
			switch name {
			case "rollout-restart":
				st.DaemonSet = of
			case "external", "external-replace":
				st.Template = remediations.Template{APIVersion: "remediators.example/v1", Kind: of, Namespace: "remediators", Name: "own"}
			default:
				st.Unit = of
			}
		}
		out = append(out, st)
	}
	return out
}
