package report

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// Report is what Drydock did to some nodes in a time, and would have done. As JSON it is what `-o json` prints; the page has the
// same numbers.
type Report struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	From       time.Time `json:"from"`
	To         time.Time `json:"to"`
	// Of says which nodes it is about; empty: all. Nodes is how many were looked at.
	// NodesConcerned is how many of them a repair concerns.
	Of             string `json:"of,omitempty"`
	Nodes          int    `json:"nodes"`
	NodesConcerned int    `json:"nodesConcerned"`
	Total          Group  `json:"total"`
	// Policies and ByNode have those alone that a repair concerns, most repairs first.
	Policies []Group `json:"policies"`
	ByNode   []Group `json:"byNode"`
	// Repairs are those that the numbers count, oldest first.
	Repairs  []Repair  `json:"repairs"`
	Holds    []Hold    `json:"holds"`
	Breakers []Breaker `json:"breakers"`
	// Blind are the times in which Drydock could not see the fleet, and decided nothing.
	Blind []Period `json:"blind"`
	// Measured is what Prometheus adds; absent: none was asked, or it had nothing.
	Measured *Measured `json:"measured,omitempty"`
	// Unsaid is what the data does not say, each with why.
	Unsaid []string `json:"unsaid"`

	// ledger: it was read.
	ledger bool
}

// Group are the numbers of one policy, of one node, or of all. Repairs are those that ended; those that were only observed are
// counted by themselves, as WouldBe.
type Group struct {
	Name     string         `json:"name,omitempty"`
	Repairs  int            `json:"repairs"`
	Outcomes map[string]int `json:"outcomes"`
	// Steps are the attempts that were issued, by their step, also by repairs that are under way.
	Steps map[string]int `json:"steps"`
	// MedianSeconds and WorstSeconds are of the repairs that recovered, from a repair's beginning to its end; absent: none did.
	MedianSeconds *int64 `json:"medianSeconds,omitempty"`
	WorstSeconds  *int64 `json:"worstSeconds,omitempty"`
	// AtOnce is the largest number of repairs that had issued a step and were on record at the same time; WouldAtOnce is that of
	// the steps that would have been under way.
	AtOnce      int            `json:"atOnce"`
	WouldBe     int            `json:"wouldBe"`
	WouldSteps  map[string]int `json:"wouldSteps"`
	WouldAtOnce int            `json:"wouldAtOnce"`
	// ByItself counts what got well without the step: repairs that ended SelfRecovered, and would-be repairs whose node was well
	// before the step's wait was over.
	ByItself int `json:"byItself"`
	// UnderWay are on record now: in flight, or waiting. NeedPerson counts repairs that ran out of steps, and nobody has reset them.
	UnderWay   int `json:"underWay"`
	NeedPerson int `json:"needPerson"`
	// Requested and Cancelled are what people did: repairs that somebody asked for, and repairs that somebody ended.
	Requested int `json:"requested"`
	Cancelled int `json:"cancelled"`
}

// Repair is one repair, as its history or its record has it.
type Repair struct {
	Number int    `json:"number"`
	ID     string `json:"id"`
	Node   string `json:"node"`
	// Target is what was repaired, where that is not the node itself: a pod, or a location of the mesh.
	Target string `json:"target,omitempty"`
	Policy string `json:"policy"`
	// Outcome is how it ended; empty: it is on record, in Phase.
	Outcome remediations.Outcome  `json:"outcome,omitempty"`
	Phase   remediations.Phase    `json:"phase,omitempty"`
	Steps   remediations.Attempts `json:"steps"`
	Would   remediations.Attempt  `json:"would,omitzero"`
	Began   time.Time             `json:"began"`
	Ended   time.Time             `json:"ended,omitzero"`
	// Seconds is from its beginning to its end, or until now.
	Seconds int64 `json:"seconds"`
	// IllSeconds is how long the alert of a would-be repair had fired when the node was well, or at its end.
	IllSeconds int64 `json:"illSeconds,omitempty"`
	ByItself   bool  `json:"byItself,omitempty"`
	// Request is what a person asked for, ByPerson: a person ended it, NeedsPerson: it ran out of steps, and nobody has reset it.
	Request     string `json:"request,omitempty"`
	ByPerson    bool   `json:"byPerson,omitempty"`
	NeedsPerson bool   `json:"needsPerson,omitempty"`
	Why         string `json:"why,omitempty"`

	// acted is the time that counts for the number at once; ticks are the moments of steps that are known.
	acted Period
	ticks []time.Time
}

// Period is from one time to another.
type Period struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Hold is how long repairs of a policy were held by a guard.
type Hold struct {
	Policy string              `json:"policy"`
	Reason remediations.Reason `json:"reason"`
	// Seconds is how long at least one was held so, Most is how many at the same time.
	Seconds int64 `json:"seconds"`
	Most    int   `json:"most"`
	// Source says where it is from: SourceRecords knows the holds of now, SourcePrometheus all that were measured.
	Source string `json:"source"`
}

// Sources of holds and of breakers' openings.
const (
	SourceRecords    = "records"
	SourceLedger     = "ledger"
	SourcePrometheus = "prometheus"
)

// Breaker is what a breaker that stopped repairs did.
type Breaker struct {
	Scope string `json:"scope"`
	// Openings is how often it opened, Seconds is how long it was open.
	Openings int   `json:"openings"`
	Seconds  int64 `json:"seconds"`
	// State is that of now, where the ledger knows it.
	State  ledger.BreakerState `json:"state,omitempty"`
	Source string              `json:"source"`

	open []Period
}

// Measured is what Prometheus saw.
type Measured struct {
	// StepSeconds is how far apart the samples are. MissingSeconds is how long there was none.
	StepSeconds    int64 `json:"stepSeconds"`
	MissingSeconds int64 `json:"missingSeconds"`
	// InFlight is the largest number of repairs in flight at the same time, of the whole fleet; absent where the report is about some nodes.
	InFlight *int `json:"inFlight,omitempty"`
}
