package report

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// Report is what Drydock did to nodes in a period, or would have done for policies that only
// observed. `-o json` prints this struct. The page has the same numbers.
type Report struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	// Of is a phrase, empty for all nodes. Nodes is the number of nodes that were read. NodesConcerned
	// is the number of them that had a repair.
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
	// Blind are the periods while Drydock could not see the fleet, and repaired nothing.
	Blind []Period `json:"blind"`
	// Measured is absent if Prometheus was not asked or had no data.
	Measured *Measured `json:"measured,omitempty"`
	// Unsaid has a sentence for each thing that the report cannot show, with the reason.
	Unsaid []string `json:"unsaid"`

	ledger bool
}

// Group has the numbers of one policy, of one node, or of all repairs. Repairs counts ended
// repairs. WouldBe counts those that were only observed.
type Group struct {
	Name     string         `json:"name,omitempty"`
	Repairs  int            `json:"repairs"`
	Outcomes map[string]int `json:"outcomes"`
	// Steps counts issued attempts by step, including those of repairs on record now.
	Steps map[string]int `json:"steps"`
	// MedianSeconds and WorstSeconds are how long recovered repairs took, from beginning to end. They
	// are absent if no repair recovered.
	MedianSeconds *int64 `json:"medianSeconds,omitempty"`
	WorstSeconds  *int64 `json:"worstSeconds,omitempty"`
	// AtOnce is the largest number of repairs on record at the same time, if a step was issued.
	// WouldAtOnce is this number for repairs that were only observed.
	AtOnce      int            `json:"atOnce"`
	WouldBe     int            `json:"wouldBe"`
	WouldSteps  map[string]int `json:"wouldSteps"`
	WouldAtOnce int            `json:"wouldAtOnce"`
	// ByItself counts nodes that recovered without a step: the outcome SelfRecovered, and observed
	// repairs whose node was healthy before the end of the step's wait.
	ByItself int `json:"byItself"`
	// UnderWay counts repairs on record now, in flight or waiting. NeedPerson counts exhausted repairs
	// that were not reset.
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
	// Target is a pod or a location of the mesh, if the node itself was not repaired.
	Target string `json:"target,omitempty"`
	Policy string `json:"policy"`
	// Outcome is empty for a repair that is on record now. Phase is then its phase.
	Outcome remediations.Outcome  `json:"outcome,omitempty"`
	Phase   remediations.Phase    `json:"phase,omitempty"`
	Steps   remediations.Attempts `json:"steps"`
	Would   remediations.Attempt  `json:"would,omitzero"`
	Began   time.Time             `json:"began"`
	Ended   time.Time             `json:"ended,omitzero"`
	// Seconds is the time from the repair's beginning to its end, or to now.
	Seconds int64 `json:"seconds"`
	// IllSeconds is set only if the policy only observed. It is the time from the start of the alert
	// until the node was healthy, or until the repair ended.
	IllSeconds int64 `json:"illSeconds,omitempty"`
	ByItself   bool  `json:"byItself,omitempty"`
	// ByPerson reports that a person ended the repair. NeedsPerson reports that it is exhausted and
	// was not reset.
	Request     string `json:"request,omitempty"`
	ByPerson    bool   `json:"byPerson,omitempty"`
	NeedsPerson bool   `json:"needsPerson,omitempty"`
	Why         string `json:"why,omitempty"`

	// acted is the period that counts for AtOnce or WouldAtOnce. It is zero if no step was issued and
	// the repair would have issued none. ticks are the known times of steps.
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
	// Seconds is the time with at least one held repair. Most is the largest number at the same time.
	Seconds int64 `json:"seconds"`
	Most    int   `json:"most"`
	// SourceRecords has only current holds. SourcePrometheus has all measured holds.
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
	// Seconds is how long the breaker was open in total.
	Openings int   `json:"openings"`
	Seconds  int64 `json:"seconds"`
	// State is the current state, if the ledger has it.
	State  ledger.BreakerState `json:"state,omitempty"`
	Source string              `json:"source"`

	open []Period
}

// Measured is additional data from Prometheus.
type Measured struct {
	// MissingSeconds is the time without samples.
	StepSeconds    int64 `json:"stepSeconds"`
	MissingSeconds int64 `json:"missingSeconds"`
	// InFlight is the largest number of repairs in flight at the same time in the whole fleet. It is
	// absent in a report about some nodes.
	InFlight *int `json:"inFlight,omitempty"`
}
