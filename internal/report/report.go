package report

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// Report is what Drydock did to some nodes in a time, and would have done. `-o json` prints it as
// JSON; the page has the same numbers.
type Report struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	// Of says which nodes it covers; empty: all. Nodes is how many were read. NodesConcerned is how
	// many of them had a repair.
	Of             string `json:"of,omitempty"`
	Nodes          int    `json:"nodes"`
	NodesConcerned int    `json:"nodesConcerned"`
	Total          Group  `json:"total"`
	// Policies and ByNode have only those with a repair, most repairs first.
	Policies []Group `json:"policies"`
	ByNode   []Group `json:"byNode"`
	// Repairs are the counted repairs, oldest first.
	Repairs  []Repair  `json:"repairs"`
	Holds    []Hold    `json:"holds"`
	Breakers []Breaker `json:"breakers"`
	// Blind are the times when Drydock could not see the fleet, and decided nothing.
	Blind []Period `json:"blind"`
	// Measured is the additional data from Prometheus. Absent: not asked, or no data.
	Measured *Measured `json:"measured,omitempty"`
	// Unsaid is what the data do not show, each with the reason.
	Unsaid []string `json:"unsaid"`

	// ledger: the ledger was read.
	ledger bool
}

// Group is the numbers of one policy, of one node, or of all. Repairs are the ended ones. Those
// that were only observed are counted separately, as WouldBe.
type Group struct {
	Name     string         `json:"name,omitempty"`
	Repairs  int            `json:"repairs"`
	Outcomes map[string]int `json:"outcomes"`
	// Steps are the issued attempts by step, including those of repairs under way.
	Steps map[string]int `json:"steps"`
	// MedianSeconds and WorstSeconds are the times of recovered repairs, from start to end. Absent:
	// none recovered.
	MedianSeconds *int64 `json:"medianSeconds,omitempty"`
	WorstSeconds  *int64 `json:"worstSeconds,omitempty"`
	// AtOnce is the largest number of repairs with an issued step that were on record at the same
	// time. WouldAtOnce is the same for the steps that would have been issued.
	AtOnce      int            `json:"atOnce"`
	WouldBe     int            `json:"wouldBe"`
	WouldSteps  map[string]int `json:"wouldSteps"`
	WouldAtOnce int            `json:"wouldAtOnce"`
	// ByItself counts recoveries without the step: repairs that ended SelfRecovered, and would-be
	// repairs whose node was healthy before the end of the step's wait.
	ByItself int `json:"byItself"`
	// UnderWay are on record now: in flight, or waiting. NeedPerson counts repairs that ran out of
	// steps and were not reset.
	UnderWay   int `json:"underWay"`
	NeedPerson int `json:"needPerson"`
	// Requested and Cancelled count the repairs that people requested or cancelled.
	Requested int `json:"requested"`
	Cancelled int `json:"cancelled"`
}

// Repair is one repair, from the history or the record.
type Repair struct {
	Number int    `json:"number"`
	ID     string `json:"id"`
	Node   string `json:"node"`
	// Target is what was repaired, if not the node itself: a pod, or a location of the mesh.
	Target string `json:"target,omitempty"`
	Policy string `json:"policy"`
	// Outcome is how it ended. Empty: it is on record, in Phase.
	Outcome remediations.Outcome  `json:"outcome,omitempty"`
	Phase   remediations.Phase    `json:"phase,omitempty"`
	Steps   remediations.Attempts `json:"steps"`
	Would   remediations.Attempt  `json:"would,omitzero"`
	Began   time.Time             `json:"began"`
	Ended   time.Time             `json:"ended,omitzero"`
	// Seconds is from its start to its end, or until now.
	Seconds int64 `json:"seconds"`
	// IllSeconds is how long the alert of a would-be repair had fired when the node was healthy, or
	// at the end.
	IllSeconds int64 `json:"illSeconds,omitempty"`
	ByItself   bool  `json:"byItself,omitempty"`
	// Request is a person's request. ByPerson: a person ended the repair. NeedsPerson: it ran out
	// of steps and was not reset.
	Request     string `json:"request,omitempty"`
	ByPerson    bool   `json:"byPerson,omitempty"`
	NeedsPerson bool   `json:"needsPerson,omitempty"`
	Why         string `json:"why,omitempty"`

	// acted is the time that counts for AtOnce. ticks are the known times of steps.
	acted Period
	ticks []time.Time
}

// Period is from one time to another.
type Period struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Hold is how long a guard held repairs of a policy.
type Hold struct {
	Policy string              `json:"policy"`
	Reason remediations.Reason `json:"reason"`
	// Seconds is how long at least one was held. Most is the largest number held at the same time.
	Seconds int64 `json:"seconds"`
	Most    int   `json:"most"`
	// Source is where the data come from: SourceRecords has the current holds, SourcePrometheus all
	// measured ones.
	Source string `json:"source"`
}

// These are the sources of holds and of breakers' openings.
const (
	SourceRecords    = "records"
	SourceLedger     = "ledger"
	SourcePrometheus = "prometheus"
)

// Breaker is the openings of one breaker.
type Breaker struct {
	Scope string `json:"scope"`
	// Openings is how often it opened. Seconds is how long it was open.
	Openings int   `json:"openings"`
	Seconds  int64 `json:"seconds"`
	// State is the current state, if the ledger has it.
	State  ledger.BreakerState `json:"state,omitempty"`
	Source string              `json:"source"`

	open []Period
}

// Measured is the data from Prometheus.
type Measured struct {
	// StepSeconds is the interval of the samples. MissingSeconds is the time without samples.
	StepSeconds    int64 `json:"stepSeconds"`
	MissingSeconds int64 `json:"missingSeconds"`
	// InFlight is the largest number of repairs in flight at the same time, in the whole fleet.
	// Absent in a report about some nodes.
	InFlight *int `json:"inFlight,omitempty"`
}
