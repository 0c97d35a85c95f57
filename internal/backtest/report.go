package backtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

// Seconds is a duration that is written in JSON as whole seconds.
type Seconds time.Duration

// MarshalJSON writes whole seconds.
func (s Seconds) MarshalJSON() ([]byte, error) {
	return json.Marshal(int64(time.Duration(s) / time.Second))
}

// UnmarshalJSON reads whole seconds.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	var n int64
	err := json.Unmarshal(text, &n)
	*s = Seconds(time.Duration(n) * time.Second)
	return err
}

// Report is the result of a backtest.
type Report struct {
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// Assumptions has one sentence for each thing that the recorded data do not show. NotReplayed
	// has the policies that were not replayed, with the reasons.
	Assumptions []string       `json:"assumptions"`
	NotReplayed []string       `json:"notReplayed"`
	Gaps        []Gap          `json:"gaps"`
	Skipped     []history.Skip `json:"skipped"`
	// Runs has two answers for each configuration. In the first, each fault ends when it ended in
	// the past. In the second, each step cures its node.
	Runs []Answer `json:"runs"`
	// Differences has each fault that the first two configurations treat differently. It compares
	// the replays where steps have no effect.
	Differences []Difference `json:"differences,omitempty"`
}

// Answer is the result of one replay of one configuration. Curing means that each step was assumed
// to cure its node.
type Answer struct {
	Config  string      `json:"config"`
	Curing  bool        `json:"asIfCured"`
	Totals  Totals      `json:"totals"`
	ByStep  []StepCount `json:"byStep"`
	Repairs []*Repair   `json:"repairs"`
	Holds   []Held      `json:"holds"`
	// HeldNodes has the periods while a node's repair was held, sorted by their ends.
	HeldNodes []NodeHold `json:"heldNodes"`
	Openings  []Opening  `json:"breakerOpenings"`
	Again     []Again    `json:"repairedAgain"`
}

// Totals has the most important numbers of one answer.
type Totals struct {
	// Acted counts the repairs with at least one step. Unnecessary counts those whose fault ended
	// by itself before the time limit of the first step.
	Acted       int `json:"repairs"`
	Unnecessary int `json:"unnecessary"`
	// Shortened counts the necessary repairs that ended their fault at least one minute earlier
	// than in the past. Saved is the sum of the saved time.
	Shortened int     `json:"shortened"`
	Saved     Seconds `json:"savedSeconds"`
	Exhausted int     `json:"exhausted"`
	// OnlyHeld counts the faults with a held repair and without a step on the node.
	OnlyHeld   int `json:"onlyHeld"`
	MostAtOnce int `json:"mostAtOnce"`
}

// StepCount is the number of attempts of one step of one policy.
type StepCount struct {
	Policy string `json:"policy"`
	Step   string `json:"step"`
	Issued int    `json:"issued"`
}

// Again is a node that was repaired more than once.
type Again struct {
	Node  string `json:"node"`
	Times int    `json:"times"`
}

// Difference is one fault that two configurations treat differently: with other steps, or at other
// times.
type Difference struct {
	Node   string    `json:"node"`
	Alert  string    `json:"alert"`
	Began  time.Time `json:"began"`
	First  []Step    `json:"first"`
	Second []Step    `json:"second"`
}

const shortenedBy = time.Minute

func (r *Replay) answer(name string) Answer {
	s := r.story
	out := Answer{Config: name, Curing: r.curing, Repairs: s.repairs, Holds: s.heldBy(), HeldNodes: s.byNode, Openings: s.openings}
	out.Totals.MostAtOnce, out.Totals.OnlyHeld = s.most, s.heldOnly
	steps, nodes := map[StepCount]int{}, map[string]int{}
	for _, one := range s.repairs {
		if one.Outcome == remediations.OutcomeExhausted {
			out.Totals.Exhausted++
		}
		if len(one.Steps) == 0 {
			continue
		}
		out.Totals.Acted++
		nodes[one.Node]++
		if one.Unnecessary {
			out.Totals.Unnecessary++
		}
		if time.Duration(one.Saved) >= shortenedBy && !one.Unnecessary {
			out.Totals.Shortened++
			out.Totals.Saved += one.Saved
		}
		for _, step := range one.Steps {
			steps[StepCount{Policy: one.Policy, Step: step.Name}]++
		}
	}
	for of, n := range steps {
		of.Issued = n
		out.ByStep = append(out.ByStep, of)
	}
	slices.SortFunc(out.ByStep, func(a, b StepCount) int { return cmp.Or(cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.Step, b.Step)) })
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		if nodes[node] > 1 {
			out.Again = append(out.Again, Again{node, nodes[node]})
		}
	}
	slices.SortStableFunc(out.Again, func(a, b Again) int { return cmp.Compare(b.Times, a.Times) })
	return out
}

func differences(a, b []*Repair) (out []Difference) {
	type key struct {
		node, alert string
		began       time.Time
	}
	byFault := map[key]*Difference{}
	of := func(r *Repair) *Difference {
		k := key{r.Node, r.Alert, r.Began}
		if byFault[k] == nil {
			byFault[k] = &Difference{Node: r.Node, Alert: r.Alert, Began: r.Began}
		}
		return byFault[k]
	}
	for _, r := range a {
		d := of(r)
		d.First = append(d.First, r.Steps...)
	}
	for _, r := range b {
		d := of(r)
		d.Second = append(d.Second, r.Steps...)
	}
	for _, d := range byFault {
		if !slices.EqualFunc(d.First, d.Second, func(a, b Step) bool { return a.Name == b.Name && a.At.Equal(b.At) }) {
			out = append(out, *d)
		}
	}
	slices.SortFunc(out, func(a, b Difference) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Alert, b.Alert))
	})
	return out
}

func notReplayed(c *remediations.Config) (out []string) {
	for _, p := range c.Policies {
		switch {
		case p.Mode == remediations.ModeOff:
			out = append(out, p.Name+": its mode is off")
		case p.Kind != remediations.KindNode:
			out = append(out, fmt.Sprintf("%s: its targets are of the kind %s, and the record has no data about these", p.Name, p.Kind))
		}
	}
	return out
}

// Each sentence is something that a replay assumes because the recorded data do not show it.
func assumptions(o Options) []string {
	out := []string{
		"Policies that observe are replayed as if they enforced.",
		"As it went: each call is accepted and does nothing. A node recovers when it recovered in the past.",
		"As if cured: a step makes its node healthy and ends its alerts this long after the call: " + o.Cures.String() + ". Until the fault ended in the past, the node stays healthy, and no alert begins on it.",
		"A drain takes " + o.Cures.of("drain").String() + " in both answers.",
		"A repair is unnecessary if its fault ended by itself within the wait of its first step.",
		"A node's lease is renewed as long as its Ready condition is not Unknown.",
		"The provider refuses no step.",
		"Alertmanager answers each request, and the Watchdog is never late.",
		"The record has no approvals, pauses, requests and break-glass, so the replay has none. A silence is known only while Drydock held a repair for it.",
		"A cordon in the record counts as a person's cordon, also if Drydock set it.",
		"The record has no boot IDs, so a reboot that cured looks like a recovery. Such a repair keeps its slot for its whole wait, and a breaker that waits for its proof opens again.",
		"A breaker records to the minute when the fleet became calm, so a call after that may come a minute sooner or later.",
		"An exhausted repair is reset when the last alert of its node has ended, as if the person who fixed the node had done it.",
		"Reads, writes and calls take no time. Live, decisions come later by the time that these take.",
		"Each difference from the past has consequences: a repair takes a slot, and its end begins a cooldown and changes a breaker that waits for it.",
	}
	if all := o.Alertmanager.Route.intervals(); len(all) > 0 {
		out = append(out, "The time intervals of Alertmanager's routes mute no alert: "+strings.Join(all, ", ")+".")
	}
	for _, p := range o.Config.Policies {
		if p.Witness == nil {
			continue
		}
		for _, s := range p.Witness.Signs {
			if said := notRecorded(s.Kind); said != "" && !slices.Contains(out, "Policy "+p.Name+": "+said) {
				out = append(out, "Policy "+p.Name+": "+said)
			}
		}
	}
	return out
}

// The end of an assumption about a sign that must confirm an alert, but is not in the recorded
// data.
const showsNothing = "So this sign of its witness shows nothing. A repair that needs it is held as " + string(remediations.ReasonNotWitnessed) + "."

// notRecorded returns "" if the recorded data show signs of this kind.
func notRecorded(k signs.Kind) string {
	switch k {
	case signs.DaemonSetPod:
		return "the pod of its witness counts as unhealthy while an alert fires on its node."
	case signs.MissingGPUs:
		return "the GPUs that a node offers are not in the record. " + showsNothing
	case signs.NotRunning:
		return "the provider's state of an instance is not in the record. " + showsNothing
	case signs.NotReady, signs.StaleLease, signs.Condition:
	}
	return ""
}

// JSON writes the report as JSON.
func (r *Report) JSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

func words(steps []Step) string {
	var out []string
	for _, s := range steps {
		out = append(out, s.Name+" "+s.At.Format("2006-01-02 15:04:05"))
	}
	if len(out) == 0 {
		return "nothing"
	}
	return strings.Join(out, ", ")
}
