package ui

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

type tile struct {
	Node  string `json:"node"`
	State State  `json:"state"`
	Zone  string `json:"zone,omitempty"`
	Pool  string `json:"pool,omitempty"`
	// Policy is that of the repair or else of the alert that waits for one. Reason is empty if nothing
	// holds the repair.
	Policy string `json:"policy,omitempty"`
	Step   string `json:"step,omitempty"`
	Reason string `json:"reason,omitempty"`
	Ill    string `json:"ill,omitempty"`
	// Since is when the state began, and Until is when it ends without a person's action. Both are RFC
	// 3339 times, or empty if unknown.
	Says  string `json:"says,omitempty"`
	Until string `json:"until,omitempty"`
	Since string `json:"since,omitempty"`
}

func (t tile) Look() Look { return t.State.look() }

// Word returns the short text beside the node's name on the tile.
func (t tile) Word() string {
	word := string(t.State)
	if t.Reason != "" && !strings.EqualFold(t.Reason, word) {
		word += ": " + t.Reason
	}
	if t.Step != "" {
		word += " · " + t.Step
	}
	return word
}

// maxText is in bytes. Drydock's own texts are shorter.
const maxText = 1 << 10

// plain removes control characters: any user of the cluster may have written the text.
func plain(s string) string { return text.Line(s, maxText) }

// tileOf shows the repair that needs a person most, if the node has several.
func tileOf(n *corev1.Node, ledger *inspect.Ledger, now time.Time) tile {
	best := tile{}
	for _, r := range ledger.RepairsOf(n, now) {
		t := tile{Node: n.Name, State: stateOf(n, r), Zone: plain(ledger.Zone(n)), Pool: plain(ledger.Pool(n)), Ill: plain(inspect.Ill(n)), Says: r.Says()}
		switch {
		case r.Record != nil:
			t.Policy, t.Step, t.Since = r.Record.Policy, r.Record.Step.String(), inspect.Stamp(r.Record.Began)
			if r.Record.Phase.InFlight() {
				t.Until = inspect.YetToCome(&r.Record.Deadline, now)
			}
		case r.Problem != "":
			t.Reason = string(remediations.ReasonRecordMalformed)
		case r.Alert != nil:
			t.Policy, t.Since = r.Alert.Policy, inspect.Stamp(r.Alert.ReceivedAt)
		}
		if r.Hold != nil {
			t.Reason, t.Until = string(r.Hold.Reason), inspect.YetToCome(r.Hold.Until, now)
		}
		t.Policy, t.Step, t.Reason, t.Says = plain(t.Policy), plain(t.Step), plain(t.Reason), plain(t.Says)
		if best.Node == "" || rank(t.State) < rank(best.State) {
			best = t
		}
	}
	return best
}

func stateOf(n *corev1.Node, r inspect.Repair) State {
	switch {
	case r.Record != nil && r.Record.Phase == remediations.PhaseExhausted:
		return Exhausted
	case r.Record != nil && r.Record.Phase.InFlight():
		return Repairing
	case r.Hold != nil && (r.Hold.Reason == remediations.ReasonPaused || r.Hold.Reason == remediations.ReasonExcluded):
		return Paused
	case r.Hold != nil, r.Problem != "":
		return Held
	case !r.Idle(), r.Ill != "":
		return Unhealthy
	case n.Spec.Unschedulable:
		return Cordoned
	}
	return Well
}

func rank(s State) int { return slices.IndexFunc(states, func(l Look) bool { return l.State == s }) }

// Group returns the key of the tile's group, "ZONE/POOL", for the page's script.
func (t tile) Group() string { return t.Zone + "/" + t.Pool }
