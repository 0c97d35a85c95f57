// Package scene has the scenes that tests of decisions are made of: what is known of a node, of a pod's sidecar or of a location, in a
// form that a person can read. The core and the kinds of targets share it. It is for tests alone.
package scene

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/targets/location"
	"drydock.dev/drydock/remediations/targets/sidecar"
)

// Noon is the moment at which every scene plays; a file says <now>, <now-5m> or <now+1h30m>.
var Noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// The alert of every scene. Its fingerprint is written out, so that a file can name it.
const FP = "8b2d1f0c3a4e5d67"

// Scene is a State in a form that a person can read. What it leaves out is as on an ordinary bad day: node n1 of ten is
// not Ready, its alert has been firing for ten minutes, both Alertmanagers say so, nobody objects, the mode is enforce.
type Scene struct {
	Policy  Policy   `json:"policy"`
	Limits  Limits   `json:"limits"`
	Windows []string `json:"windows"`
	// Provided are the remediations of this installation; absent: reboot.
	Provided []string `json:"provided"`
	// Providers are who carries out those on machines, as name: scheme; absent: somebody, on any node.
	Providers map[string]string `json:"providers"`
	// MinNodes and 30% of all must have the alert for a step that changes the whole cluster; absent: 3.
	MinNodes   int  `json:"minNodes"`
	RequireAll bool `json:"requireAll"`
	// Others are further policies, each with its plan.
	Others []Other `json:"others"`

	Node    Node                 `json:"node"`
	Alerts  []Alert              `json:"alerts"`
	Record  any                  `json:"record"`
	Leader  any                  `json:"leader"`
	History []remediations.Entry `json:"history"`

	Word  Word   `json:"word"`
	Lease *Lease `json:"lease"`
	Beats Beats  `json:"heartbeats"`
	// Read is what was read of signs that the Node does not show, named as in the policy's witness.
	Read map[string]Testimony `json:"read"`
	Call *remediations.Call   `json:"call"`
	// Survey is what the provider said of the machine a moment ago; absent: nothing against a reboot.
	Survey *Survey `json:"survey"`
	// Replacement is what it said since about the machine, Pods what the cluster said about pods; absent: nobody was asked.
	Replacement *Replacement `json:"replacement"`
	Pods        *Pods        `json:"pods"`
	// WellFor is how long the node has been seen well, Heard how old the Watchdog was then, seen from now.
	WellFor string `json:"wellFor"`
	Heard   string `json:"heard"`
	Ledger  Ledger `json:"ledger"`
	Fleet   Fleet  `json:"fleet"`
}

type Survey struct {
	Never     bool                `json:"never"`
	Step      string              `json:"step"`
	Asked     string              `json:"asked"` // how long ago
	Trouble   string              `json:"trouble"`
	Fleetwide bool                `json:"fleetwide"`
	Again     string              `json:"again"`
	Before    remediations.Before `json:"before"`
	Evidence  string              `json:"evidence"`
}

func (v *Survey) survey() *remediations.Survey {
	switch {
	case v == nil:
		return &remediations.Survey{Step: remediations.StepOn{Name: "reboot"}, At: Ago("1s", "")}
	case v.Never:
		return nil
	}
	return &remediations.Survey{Step: v.step(), At: Ago(v.Asked, "1s"), Trouble: v.Trouble, Fleetwide: v.Fleetwide, Again: Span(v.Again, "5m"), Before: v.Before, Evidence: v.Evidence}
}

// step is a remediation's name, and the unit or DaemonSet behind it.
func (v *Survey) step() remediations.StepOn {
	name, on, _ := strings.Cut(v.Step, " ")
	if name == "rollout-restart" {
		return remediations.StepOn{Name: name, DaemonSet: on}
	}
	return remediations.StepOn{Name: name, Unit: on}
}

type Pods struct {
	Asked   string `json:"asked"` // how long ago
	Intent  string `json:"intent"`
	Missing string `json:"missing"`
}

type Replacement struct {
	Asked string `json:"asked"` // how long ago
	// Intent is the one about which it was asked; absent: the one on record.
	Intent      string `json:"intent"`
	MachineGone bool   `json:"machineGone"`
	Missing     string `json:"missing"`
	// Successors are the provider IDs of the machines that came; absent: that of the scene's own node.
	Successors []string `json:"successors"`
}

type Testimony struct {
	Answer remediations.Answer `json:"answer"`
	Asked  string              `json:"asked"` // how long ago
}

type Policy struct {
	Gone           bool              `json:"gone"`
	Mode           remediations.Mode `json:"mode"`
	For            string            `json:"for"`
	ProofFor       string            `json:"proofFor"`
	Cooldown       string            `json:"cooldown"`
	RelapseWindow  string            `json:"relapseWindow"`
	Plan           []string          `json:"plan"` // "reboot" for each step; "reboot 2" for two attempts; "restart-unit=x.service"
	RepairCordoned bool              `json:"repairCordoned"`
	Approval       bool              `json:"approval"`
	OnExhausted    string            `json:"onExhausted"`
	// NodeSelector selects by one label's presence.
	NodeSelector string `json:"nodeSelector"`
	// Witness is "unwritten", "none", or one sign: "ready", "lease", "gpus", "provider", "DiskPressure=True",
	// "pod kube-system/kube-proxy"; several stand with commas. Absent: ready.
	Witness string `json:"witness"`
}

type Other struct {
	Name string            `json:"name"`
	Mode remediations.Mode `json:"mode"`
	Plan []string          `json:"plan"`
}

type Limits struct {
	RepairsPerNode int `json:"repairsPerNode"`
	Concurrent     int `json:"concurrent"`
}

type Node struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Ready       string            `json:"ready"` // True, False, Unknown, none
	BootID      *string           `json:"bootID"`
	// Conditions are further ones, by type; Allocatable is what the node offers.
	Conditions   map[string]string `json:"conditions"`
	Allocatable  map[string]string `json:"allocatable"`
	Age          string            `json:"age"`
	Cordoned     bool              `json:"cordoned"`
	Taints       []string          `json:"taints"`
	Deleting     bool              `json:"deleting"`
	ControlPlane bool              `json:"controlPlane"`
}

type Alert struct {
	Fingerprint string `json:"fingerprint"`
	Policy      string `json:"policy"`
	Status      string `json:"status"`
	Received    string `json:"received"` // how long ago
	Started     string `json:"started"`  // how long ago
	// Active: Alertmanager says so, as it always does of the first.
	Active bool `json:"active"`
}

type Word struct {
	Never          bool      `json:"never"`
	Age            string    `json:"age"`
	Asked          string    `json:"asked"` // how long ago the node asked for a look; "never"
	WatchdogMisses int       `json:"watchdogMisses"`
	Sick           int       `json:"sick"` // so many of the other nodes have the alert, too
	Replicas       []Replica `json:"replicas"`
}

type Replica struct {
	Err        string `json:"err"`
	NoWatchdog bool   `json:"noWatchdog"`
	BlindBy    string `json:"blindBy"`
	// Alert is what the replica has: active, silenced, inhibited, muted, unprocessed, absent.
	Alert string `json:"alert"`
	// Silences are those that silence it, each with its author, comment and end where the replica gave them: "id",
	// or "id author comment end".
	Silences []string `json:"silences"`
	// Sent and WatchdogSent are how long ago the alert and the Watchdog were last received.
	Sent         string `json:"sent"`
	WatchdogSent string `json:"watchdogSent"`
}

// Beats are the leases of all ten nodes.
type Beats struct {
	Read  string `json:"read"` // how long ago; "never"
	Stale int    `json:"stale"`
}

type Lease struct {
	Read    string `json:"read"`    // how long ago
	Renewed string `json:"renewed"` // how long ago
}

type Ledger struct {
	// Unreadable is why the ledger could not be read just now, Malformed why it makes no sense.
	Unreadable string `json:"unreadable"`
	Malformed  string `json:"malformed"`
	// Begun are the ages of earlier repairs on the machine.
	Begun []string `json:"begun"`
	// Mine is a repair that began on the machine a moment ago.
	Mine  string              `json:"mine"`
	Slots []remediations.Slot `json:"slots"`
	// Wide are the repairs that changed the whole cluster.
	Wide []remediations.Begun `json:"wide"`
	// Breakers by scope, and the repairs in a row that ran out of steps, by policy.
	Breakers  map[string]remediations.Breaker `json:"breakers"`
	Exhausted map[string]int                  `json:"exhausted"`
	Stopped   map[string]string               `json:"stopped"`
	Orphans   []remediations.Orphan           `json:"orphans"`
	// Cures are those of the scene's machine, Unseen the times in which Drydock was blind.
	Cures  []remediations.Cure `json:"cures"`
	Unseen []remediations.Span `json:"unseen"`
	// GlassFor is how long the node's glass has been broken.
	GlassFor string `json:"glassFor"`
	// GlassWhy is why it was broken, where the ledger knows of another breaking than the node's.
	GlassWhy string `json:"glassWhy"`
}

type Fleet struct {
	// Unhealthy of the nine others are not Ready; InFlight have a repair under way; ControlPlane bear that role, and
	// ControlPlaneDown of those are not Ready.
	Unhealthy        int `json:"unhealthy"`
	InFlight         int `json:"inFlight"`
	ControlPlane     int `json:"controlPlane"`
	ControlPlaneDown int `json:"controlPlaneDown"`
}

var NowPattern = regexp.MustCompile(`<now([+-][0-9a-z]+)?>`)

// Read decodes a scene; an unknown field is an error, since a golden with a typo would pin something else.
func Read(t testing.TB, text []byte) *Scene {
	t.Helper()
	s := &Scene{}
	require.NoError(t, yaml.UnmarshalStrict(Moments(t, text), s))
	return s
}

// Moments writes the times out that a scene gives from now.
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

// State builds what Decide is given.
func (sc *Scene) State(t testing.TB) *remediations.State {
	t.Helper()
	c := sc.Config(t)
	n := sc.TheNode(t)
	s := &remediations.State{
		Config: c, Node: n, Journal: remediations.ReadJournal(n), Word: sc.Said(), Call: sc.Call, NewID: "new1",
		Ledger: &remediations.Ledger{Repairs: map[string][]remediations.Begun{}, Slots: sc.Ledger.Slots, Wide: sc.Ledger.Wide, Orphans: sc.Ledger.Orphans, Status: remediations.LedgerStatus{Breakers: sc.Ledger.Breakers, Exhausted: sc.Ledger.Exhausted, Stopped: sc.Ledger.Stopped}},
	}
	s.Survey = sc.Survey.survey()
	if r := sc.Replacement; r != nil {
		s.Replacement = &remediations.Replacement{Asked: Asked(s, r.Intent, r.Asked), MachineGone: r.MachineGone, Missing: r.Missing, Successors: r.Successors}
		if r.Successors == nil {
			s.Replacement.Successors = []string{n.Spec.ProviderID}
		}
	}
	if r := sc.Pods; r != nil {
		s.Pods = &remediations.PodProof{Asked: Asked(s, r.Intent, r.Asked), Missing: r.Missing}
	}
	for i, age := range sc.Ledger.Begun {
		s.Ledger.Repairs[remediations.Machine(n)] = append(s.Ledger.Repairs[remediations.Machine(n)], remediations.Begun{Repair: fmt.Sprintf("old%d", i), At: Ago(age, "")})
	}
	if sc.Ledger.Mine != "" {
		s.Ledger.Repairs[remediations.Machine(n)] = append(s.Ledger.Repairs[remediations.Machine(n)], remediations.Begun{Repair: sc.Ledger.Mine, At: Noon})
	}
	if sc.Ledger.GlassFor != "" {
		s.Ledger.Status.Glass = map[string]remediations.Glass{n.Name: {Since: Ago(sc.Ledger.GlassFor, ""), Why: cmp.Or(sc.Ledger.GlassWhy, n.Annotations[remediations.BreakGlassKey])}}
	}
	s.Ledger.Unseen = sc.Ledger.Unseen
	if sc.Ledger.Cures != nil {
		s.Ledger.Cures = map[string][]remediations.Cure{remediations.Machine(n): sc.Ledger.Cures}
	}
	ledger := s.Ledger
	switch {
	case sc.Ledger.Unreadable != "":
		s.Ledger, s.LedgerErr = nil, errors.New(sc.Ledger.Unreadable)
	case sc.Ledger.Malformed != "":
		s.Ledger, s.LedgerErr = nil, fmt.Errorf("%w: %s", remediations.ErrLedgerMalformed, sc.Ledger.Malformed)
	}
	s.Fleet = remediations.NewFleet(c, append(sc.OtherNodes(), n), ledger, func(string) bool { return false }, Noon)
	if sc.Beats.Read != "never" {
		s.Heartbeats = &remediations.Heartbeats{ReadAt: Ago(sc.Beats.Read, "1s"), Nodes: 10, Stale: sc.Beats.Stale}
	}
	if sc.Word.Asked != "never" {
		s.LookSince = Ago(sc.Word.Asked, "3s")
	}
	if sc.WellFor != "" {
		s.WellSince, s.WellHeard = Ago(sc.WellFor, ""), Ago(sc.Heard, "1m30s")
	}
	for text, said := range sc.Read {
		if s.Read == nil {
			s.Read = map[remediations.Sign]remediations.Testimony{}
		}
		s.Read[SignOf(text)] = remediations.Testimony{Answer: said.Answer, Saw: fmt.Sprintf("%s is %s", text, said.Answer), At: Ago(said.Asked, "1s")}
	}
	if sc.Lease != nil {
		s.Lease = &remediations.Lease{ReadAt: Ago(sc.Lease.Read, "0s"), RenewedAt: Ago(sc.Lease.Renewed, "4s"), Duration: 40 * time.Second}
	}
	return s
}

// Asked is the intent about which somebody was asked: the one on record, or that of a repair whose Node is gone.
func Asked(s *remediations.State, intent, age string) remediations.Asked {
	switch {
	case intent != "":
	case s.Journal.Record != nil && s.Journal.Record.Intent != nil:
		intent = s.Journal.Record.Intent.ID
	case len(s.Ledger.Orphans) > 0:
		intent = s.Ledger.Orphans[0].Record.Intent.ID
	}
	return remediations.Asked{Intent: intent, At: Ago(age, "1s")}
}

// Kinds are those beside nodes.
var Kinds = []*remediations.TargetKind{&location.Kind, &sidecar.Kind}

// Config is the configuration that decisions rest on.
func (sc *Scene) Config(t testing.TB) *remediations.Config {
	c := &remediations.Config{
		Kinds: Kinds,
		Limits: remediations.Limits{
			Concurrent: remediations.Quantity{Value: max(sc.Limits.Concurrent, 1)}, ConcurrentPerZone: remediations.Quantity{Value: 9}, ConcurrentPerPool: remediations.Quantity{Value: 9},
			ZoneLabel: "zone", PoolLabels: []string{"pool"}, Unhealthy: remediations.Quantity{Value: 20, Percent: true},
			RepairsPerNode: max(sc.Limits.RepairsPerNode, 1), RepairsWindow: 24 * time.Hour,
			StormCooldown: 10 * time.Minute, StartupGrace: 10 * time.Minute,
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
		c.Providers = append(c.Providers, remediations.Provider{Name: name, Scheme: sc.Providers[name], Steps: slices.Sorted(maps.Keys(c.Provided))})
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
		if n, _ := fmt.Sscanf(step, "%s %d", &st.Name, &st.Attempts); n == 0 {
			t.Fatalf("step %q", step)
		}
		if name, of, ok := strings.Cut(st.Name, "="); ok {
			st.Name = name
			switch name {
			case "rollout-restart":
				st.DaemonSet = of
			case "external":
				st.Template = remediations.Template{APIVersion: "remediators.example/v1", Kind: of, Namespace: "remediators", Name: "own"}
			default:
				st.Unit = of
			}
		}
		out = append(out, st)
	}
	return out
}
