package report

import (
	"time"

	"drydock.dev/drydock/remediations/ledger"
)

// Input is all data for a report.
type Input struct {
	From, To time.Time
	// Of is a phrase that says which nodes the report covers. It is empty for all nodes.
	Of    string
	Nodes []Node
	// Ledger is nil if it could not be read. LedgerProblem says why.
	Ledger        *ledger.Ledger
	LedgerProblem string
	// Series is nil if Prometheus was not asked or gave no answer. SeriesProblem says why it gave
	// none.
	Series        *Series
	SeriesProblem string
}

// Node is a Node's name and annotations. The report reads only Drydock's annotations.
type Node struct {
	Name        string
	Annotations map[string]string
}

// Series are Drydock's metrics in the report's period, with one sample per Step.
type Series struct {
	Step time.Duration
	// InFlight has the number of repairs in the phases Acting and Verifying, over time. A missing
	// sample means that Prometheus had no value at that time.
	InFlight []Sample
	Holds    []HoldSeries
	// Open has a sample for each time when a breaker was open. The key is the breaker's scope, for
	// example "cluster" or "zone/fra1".
	Open map[string][]Sample
}

// HoldSeries is the number of a policy's repairs that one guard held, over time.
type HoldSeries struct {
	Policy, Reason string
	Samples        []Sample
}

// Sample is one value at one time.
type Sample struct {
	At    time.Time
	Value float64
}
