package report

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// Report is what Drydock did to nodes in a period. For policies that only observed, it is what
// Drydock would have done. `-o json` prints this struct. The page has the same numbers.
type Report struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	// Of says in a phrase which nodes the report covers. It is empty for all nodes. Nodes is the
	// number of nodes that were read. NodesConcerned is the number of them that had a repair.
	Of             string `json:"of,omitempty"`
	Nodes          int    `json:"nodes"`
	NodesConcerned int    `json:"nodesConcerned"`
	Total          Group  `json:"total"`
	// Policies and ByNode have only policies and nodes with a repair, most repairs first.
	Policies []Group `json:"policies"`
	ByNode   []Group `json:"byNode"`
	// Repairs are the counted repairs, oldest first.
	Repairs  []Repair  `json:"repairs"`
	Holds    []Hold    `json:"holds"`
	Breakers []Breaker `json:"breakers"`
	// Blind are the periods while Drydock could not see the state of the fleet, and repaired nothing.
	Blind []Period `json:"blind"`
	// Measured is additional data from Prometheus. It is absent if Prometheus was not asked or had no
	// data.
	Measured *Measured `json:"measured,omitempty"`
	// Unsaid has a sentence for each thing that the report cannot show, with the reason.
	Unsaid []string `json:"unsaid"`

	// ledger reports that the ledger was read.
	ledger bool
}

// Group has the numbers of one policy, of one node, or of all repairs. Repairs is the number of
// ended repairs. Repairs that were only observed count in WouldBe instead.
type Group struct {
	Name     string         `json:"name,omitempty"`
	Repairs  int            `json:"repairs"`
	Outcomes map[string]int `json:"outcomes"`
	// Steps is the number of issued attempts by step, including those of repairs on record now.
	Steps map[string]int `json:"steps"`
	// MedianSeconds and WorstSeconds are how long recovered repairs took, from beginning to end. They
	// are absent if no repair recovered.
	MedianSeconds *int64 `json:"medianSeconds,omitempty"`
	WorstSeconds  *int64 `json:"worstSeconds,omitempty"`
	// AtOnce is the largest number of repairs that were on record at the same time. Only repairs with
	// an issued step count. WouldAtOnce is this number for repairs that were only observed, with the
	// steps that they would have issued.
	AtOnce      int            `json:"atOnce"`
	WouldBe     int            `json:"wouldBe"`
	WouldSteps  map[string]int `json:"wouldSteps"`
	WouldAtOnce int            `json:"wouldAtOnce"`
	// ByItself is the number of nodes that recovered without a step. It counts repairs with the
	// outcome SelfRecovered, and observed repairs whose node was healthy before the end of the step's
	// wait.
	ByItself int `json:"byItself"`
	// UnderWay is the number of repairs on record now, in flight or waiting. NeedPerson is the number
	// of exhausted repairs that were not reset.
	UnderWay   int `json:"underWay"`
	NeedPerson int `json:"needPerson"`
	// Requested and Cancelled are the numbers of repairs that people requested or cancelled.
	Requested int `json:"requested"`
	Cancelled int `json:"cancelled"`
}

// Repair is one repair, from a Node's history or record.
type Repair struct {
	Number int    `json:"number"`
	ID     string `json:"id"`
	Node   string `json:"node"`
	// Target is what was repaired, if that is not the node itself: a pod, or a location of the mesh.
	Target string `json:"target,omitempty"`
	Policy string `json:"policy"`
	// Outcome is how the repair ended. For a repair that is on record now, Outcome is empty, and Phase
	// is the repair's phase.
	Outcome remediations.Outcome  `json:"outcome,omitempty"`
	Phase   remediations.Phase    `json:"phase,omitempty"`
	Steps   remediations.Attempts `json:"steps"`
	Would   remediations.Attempt  `json:"would,omitzero"`
	Began   time.Time             `json:"began"`
	Ended   time.Time             `json:"ended,omitzero"`
	// Seconds is the time from the repair's beginning to its end, or to now.
	Seconds int64 `json:"seconds"`
	// IllSeconds is set only if the repair's policy only observed. It is the time from the start of
	// the alert until the node was healthy, or until the repair ended.
	IllSeconds int64 `json:"illSeconds,omitempty"`
	ByItself   bool  `json:"byItself,omitempty"`
	// Request is a person's request that caused the repair. ByPerson reports that a person ended the
	// repair. NeedsPerson reports that the repair is exhausted and was not reset.
	Request     string `json:"request,omitempty"`
	ByPerson    bool   `json:"byPerson,omitempty"`
	NeedsPerson bool   `json:"needsPerson,omitempty"`
	Why         string `json:"why,omitempty"`

	// acted is the period of the repair that counts for AtOnce or, if the repair was only observed,
	// for WouldAtOnce. It is zero if no step was issued and the repair would have issued none. ticks
	// are the known times of steps, for the timeline.
	acted Period
	ticks []time.Time
}

// Period is a period of time.
type Period struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Hold says how long one guard held repairs of one policy.
type Hold struct {
	Policy string              `json:"policy"`
	Reason remediations.Reason `json:"reason"`
	// Seconds is the time during which at least one repair was held. Most is the largest number of
	// repairs that were held at the same time.
	Seconds int64 `json:"seconds"`
	Most    int   `json:"most"`
	// Source is where the data come from. SourceRecords has only current holds. SourcePrometheus has
	// all measured holds.
	Source string `json:"source"`
}

// These are the sources of holds and of the openings of breakers.
const (
	SourceRecords    = "records"
	SourceLedger     = "ledger"
	SourcePrometheus = "prometheus"
)

// Breaker says how often and how long one breaker was open.
type Breaker struct {
	Scope string `json:"scope"`
	// Openings is how often the breaker opened. Seconds is how long it was open in total.
	Openings int   `json:"openings"`
	Seconds  int64 `json:"seconds"`
	// State is the current state, if the ledger has it.
	State  ledger.BreakerState `json:"state,omitempty"`
	Source string              `json:"source"`

	open []Period
}

// Measured is additional data from Prometheus.
type Measured struct {
	// StepSeconds is the interval between samples. MissingSeconds is the time without samples.
	StepSeconds    int64 `json:"stepSeconds"`
	MissingSeconds int64 `json:"missingSeconds"`
	// InFlight is the largest number of repairs in flight at the same time, in the whole fleet. It is
	// absent in a report about some nodes only.
	InFlight *int `json:"inFlight,omitempty"`
}
