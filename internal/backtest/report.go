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

// Seconds is a duration that JSON has in seconds.
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
	// Assumptions are the basis of the answers besides the record. NotReplayed are the policies
	// with targets that were not recorded.
	Assumptions []string `json:"assumptions"`
	NotReplayed []string `json:"notReplayed"`
	// Gaps are times without data, Skipped is what could not be read.
	Gaps    []Gap          `json:"gaps"`
	Skipped []history.Skip `json:"skipped"`
	// Runs are the answers for each configuration: as it went, and as if each step had cured.
	Runs []Answer `json:"runs"`
	// Differences are the faults that the second configuration would have treated differently, as
	// it went.
	Differences []Difference `json:"differences,omitempty"`
}

// Answer is the result for one configuration and one of the two assumptions.
type Answer struct {
	Config string `json:"config"`
	Curing bool   `json:"asIfCured"`
	Totals Totals `json:"totals"`
	// ByStep are the attempts by policy and step.
	ByStep  []StepCount `json:"byStep"`
	Repairs []*Repair   `json:"repairs"`
	Holds   []Held      `json:"holds"`
	// HeldNodes are the single holds, in the order of their ends.
	HeldNodes []NodeHold `json:"heldNodes"`
	Openings  []Opening  `json:"breakerOpenings"`
	// Again are the nodes that were repaired more than once.
	Again []Again `json:"repairedAgain"`
}

// Totals are the most important numbers.
type Totals struct {
	// Acted are the repairs that issued a step. Unnecessary are those with a fault that ended by
	// itself within the wait of the first step.
	Acted       int `json:"repairs"`
	Unnecessary int `json:"unnecessary"`
	// Shortened are the faults that ended at least a minute sooner. Saved is the total time saved.
	Shortened int     `json:"shortened"`
	Saved     Seconds `json:"savedSeconds"`
	Exhausted int     `json:"exhausted"`
	// OnlyHeld are the held faults during which no step was issued on their node.
	OnlyHeld   int `json:"onlyHeld"`
	MostAtOnce int `json:"mostAtOnce"`
}

// StepCount counts the attempts of one step of one policy.
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

// Difference is one fault that two configurations treat differently.
type Difference struct {
	Node   string    `json:"node"`
	Alert  string    `json:"alert"`
	Began  time.Time `json:"began"`
	First  []Step    `json:"first"`
	Second []Step    `json:"second"`
}

// shortenedBy is the least time that counts as shorter.
const shortenedBy = time.Minute

// answer returns the result of the replay.
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

// differences compares what two runs did about each fault.
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

// notReplayed returns the policies with targets that were not recorded.
func notReplayed(c *remediations.Config) (out []string) {
	for _, p := range c.Policies {
		switch {
		case p.Mode == remediations.ModeOff:
			out = append(out, p.Name+": its mode is off")
		case p.Kind != remediations.KindNode:
			out = append(out, fmt.Sprintf("%s: it is about a target of kind %s, and the record has no data of those", p.Name, p.Kind))
		}
	}
	return out
}

// assumptions returns the basis of the answers besides the record.
func assumptions(o Options) []string {
	out := []string{
		"Policies that observe are replayed as if they enforced.",
		"As it went: each call is accepted and does nothing. The node gets well when it got well in the past.",
		"As if cured: a step makes its node well, and ends the alerts on it, this long after its call: " + o.Cures.String() + ". Until the fault ended in the past, the node stays well and no alert begins on it.",
		"A drain takes " + o.Cures.of("drain").String() + " in both.",
		"A repair is unnecessary if its fault ended by itself within the wait of its first step.",
		"A lease is renewed for as long as the node's Ready condition is not Unknown.",
		"The provider refuses no step.",
		"Alertmanager answers each look, and the Watchdog is never late.",
		"Approvals, pauses, requests and break-glass of the past are not in the record: there are none. A silence is known only while Drydock held a repair for it then.",
		"A cordon in the record counts as a person's, also one that Drydock set.",
		"The record has no boot IDs: a reboot that cured and a recovery look alike. It keeps its slot for all of its wait, and a breaker that waits for its proof opens again.",
		"A breaker keeps the end of a storm to the minute: a call after it may come a minute sooner or later.",
		"The person who cures a node whose plan ran out resets its repair when its last alert has ended.",
		"A look, a write and a call take no time: live, a decision comes later by as much as they took.",
		"What is done otherwise has consequences: a repair takes a slot, and its end begins a cooldown and moves a breaker that waits for it.",
	}
	if all := o.Alertmanager.Route.intervals(); len(all) > 0 {
		out = append(out, "No alert is muted by the time intervals of Alertmanager's routes: "+strings.Join(all, ", ")+".")
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

// showsNothing is the assumption for a sign that was not recorded.
const showsNothing = "That sign of its witness shows nothing. A repair that needs it is held as " + string(remediations.ReasonNotWitnessed) + "."

// notRecorded returns the assumption for a sign that was not recorded. Empty: the sign was
// recorded.
func notRecorded(k signs.Kind) string {
	switch k {
	case signs.DaemonSetPod:
		return "the pod that its witness names is taken to be ill while an alert fires on its node."
	case signs.MissingGPUs:
		return "the GPUs that a node offers are not in the record. " + showsNothing
	case signs.NotRunning:
		return "what the provider says of an instance is not in the record. " + showsNothing
	case signs.NotReady, signs.StaleLease, signs.Condition:
	}
	return ""
}

// JSON writes the report for programs.
func (r *Report) JSON(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(r); err != nil {
		return fmt.Errorf("printing the report: %w", err)
	}
	return nil
}

// words returns the steps with their times.
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
