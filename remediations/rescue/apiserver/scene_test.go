package apiserver

import (
	"cmp"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/testing/scene"
)

// rescueScene is a State in a form that a person can read. By default all three API servers fail,
// their alert has been firing for ten minutes, both Alertmanagers report the alert, and nothing
// forbids a restart.
type rescueScene struct {
	Policy  rescuePolicy `json:"policy"`
	Limits  scene.Limits `json:"limits"`
	Windows []string     `json:"windows"`
	// Hosts are the control plane's hosts. The default is cp-1, cp-2 and cp-3.
	Hosts []string `json:"hosts"`

	Word scene.Word `json:"word"`
	// Posted are alerts that only a post has brought.
	Posted []scene.Alert `json:"posted"`
	// Sights are the observations, by host: "Ready", "Failing why", "Unknown why", or "never". By
	// default each host fails.
	Sights map[string]string `json:"sights"`
	Seen   string            `json:"seen"` // how long ago

	Rescue    any           `json:"rescue"`
	Ended     []EndedRescue `json:"ended"` // newest first
	Forgotten string        `json:"forgotten"`
	Malformed string        `json:"malformed"`
	Paused    *string       `json:"paused"`
	Reset     bool          `json:"reset"`

	Call    *RescueCall `json:"call"`
	WellFor string      `json:"wellFor"`
	// Received is how long ago the alert was first received. The default is ten minutes.
	Received string `json:"heard"`
	// Changed is how long ago a person changed a file in the state directory.
	Changed string `json:"changed"`
}

type rescuePolicy struct {
	Gone     bool              `json:"gone"`
	Mode     remediations.Mode `json:"mode"`
	For      string            `json:"for"`
	ProofFor string            `json:"proofFor"`
	Cooldown string            `json:"cooldown"`
	Timeout  string            `json:"timeout"`
}

func readRescue(t testing.TB, text []byte) *rescueScene {
	t.Helper()
	sc := &rescueScene{}
	require.NoError(t, yaml.UnmarshalStrict(scene.Moments(t, text), sc))
	return sc
}

func (sc *rescueScene) config(t testing.TB) *remediations.Config {
	c := (&scene.Scene{Limits: sc.Limits, Windows: sc.Windows}).Config(t)
	c.Kinds = append(c.Kinds[:len(c.Kinds):len(c.Kinds)], &Kind)
	c.Provided["restart-kubelet"] = true
	c.ControlPlaneHosts = sc.Hosts
	if sc.Hosts == nil {
		c.ControlPlaneHosts = []string{"cp-1", "cp-2", "cp-3"}
	}
	if sc.Policy.Gone {
		return c
	}
	m, err := labels.NewMatcher(labels.MatchEqual, "remediation", "apiserver-down")
	require.NoError(t, err)
	p := &remediations.Policy{
		Name: "apiserver-down", Match: labels.Matchers{m}, Kind: remediations.KindAPIServer, Mode: cmp.Or(sc.Policy.Mode, remediations.ModeEnforce),
		For: scene.Span(sc.Policy.For, "0s"), ProofFor: scene.Span(sc.Policy.ProofFor, "30s"), Cooldown: scene.Span(sc.Policy.Cooldown, "5m"),
		Plan: []remediations.Step{{Name: "restart-kubelet", Wait: time.Minute, Attempts: 1, Timeout: scene.Span(sc.Policy.Timeout, "10m")}},
	}
	c.Policies = append(c.Policies, p)
	return c
}

func (sc *rescueScene) state(t testing.TB) *State {
	t.Helper()
	c := sc.config(t)
	s := &State{Config: c, Snapshot: (&scene.Scene{Word: sc.Word}).Said(), Sights: map[string]HostSight{}, Call: sc.Call, NewID: "new1"}
	if s.Snapshot != nil {
		for _, r := range s.Snapshot.Replicas {
			for _, a := range r.Alerts {
				a.Labels["alertname"], a.Labels["remediation"] = "KubeAPIServerDown", "apiserver-down"
				delete(a.Labels, "node")
			}
		}
	}
	var posted []remediations.Alert
	for _, a := range sc.Posted {
		posted = append(posted, remediations.Alert{
			V: remediations.RecordVersion, Name: "KubeAPIServerDown", Policy: "apiserver-down", Status: cmp.Or(a.Status, remediations.StatusFiring), Fingerprint: cmp.Or(a.Fingerprint, scene.FP),
			StartsAt: scene.Ago(a.Started, "10m"), ReceivedAt: scene.Ago(a.Received, "5s"),
		})
	}
	s.Alerts = Alerts(c, s.Snapshot, posted, map[string]time.Time{scene.FP: scene.Ago(sc.Received, "10m")})
	for _, h := range c.ControlPlaneHosts {
		text, ok := sc.Sights[h]
		if !ok {
			text = "Failing connection refused"
		}
		state, why, _ := strings.Cut(text, " ")
		if state != "never" {
			s.Sights[h] = HostSight{Host: h, State: HostState(state), Why: why, At: scene.Ago(sc.Seen, "2s")}
		}
	}
	s.Journal = RescueJournal{Ended: sc.Ended, Forgotten: sc.Forgotten, Paused: sc.Paused, Reset: sc.Reset}
	if sc.Malformed != "" {
		s.Journal.Malformed = errors.New(sc.Malformed)
	}
	if sc.Rescue != nil {
		b, err := yaml.Marshal(map[string]any{"rescue": sc.Rescue})
		require.NoError(t, err)
		b, err = yaml.YAMLToJSON(b)
		require.NoError(t, err)
		e, err := DecodeRescueEntry(string(b))
		require.NoError(t, err)
		s.Journal.Rescue = e.Rescue
	}
	if sc.WellFor != "" {
		s.WellSince = scene.Ago(sc.WellFor, "")
	}
	if sc.Changed != "" {
		s.LookSince = scene.Ago(sc.Changed, "")
	}
	return s
}

// rescueVerdict is a Decision in the form of a golden file.
type rescueVerdict struct {
	Verb    lifecycle.Verb       `json:"verb"`
	Reason  remediations.Reason  `json:"reason,omitempty"`
	Message string               `json:"message,omitempty"`
	Policy  string               `json:"policy,omitempty"`
	Recheck *time.Time           `json:"recheck,omitempty"`
	Ask     []string             `json:"ask,omitempty"`
	Well    bool                 `json:"well,omitempty"`
	Try     *HostTry             `json:"try,omitempty"`
	Write   []RescueEntry        `json:"write,omitempty"`
	Ended   remediations.Outcome `json:"ended,omitempty"`
}

func renderRescue(t testing.TB, d Decision) string {
	t.Helper()
	v := rescueVerdict{Verb: d.Verb, Reason: d.Reason, Message: d.Message, Well: d.Well, Try: d.Try, Write: d.Write}
	if d.Policy != nil {
		v.Policy = d.Policy.Name
	}
	if !d.Recheck.IsZero() {
		v.Recheck = &d.Recheck
	}
	if d.AskAlerts {
		v.Ask = append(v.Ask, "alerts")
	}
	if d.AskSights {
		v.Ask = append(v.Ask, "sights")
	}
	if d.Ended != nil {
		v.Ended = d.Ended.Outcome
	}
	b, err := yaml.Marshal(v)
	require.NoError(t, err)
	return string(b)
}
