package report

import (
	"time"

	"drydock.dev/drydock/remediations/ledger"
)

// Input is all data for a report.
type Input struct {
	From, To time.Time
	// Of says which nodes were requested. Empty: all.
	Of    string
	Nodes []Node
	// Ledger is nil if it could not be read. LedgerProblem says why.
	Ledger        *ledger.Ledger
	LedgerProblem string
	// Series is nil without an answer of Prometheus. SeriesProblem says why, if Prometheus was
	// asked.
	Series        *Series
	SeriesProblem string
}

// Node is a Node's name and annotations. Only Drydock's own annotations are read.
type Node struct {
	Name        string
	Annotations map[string]string
}

// Series are Drydock's metrics in the report's time, at intervals of Step.
type Series struct {
	Step time.Duration
	// InFlight is how many repairs are Acting or Verifying. Without a sample, nothing was measured.
	InFlight []Sample
	Holds    []HoldSeries
	// Open are the samples at which a breaker was open, by scope.
	Open map[string][]Sample
}

// HoldSeries is how many repairs of a policy a guard held.
type HoldSeries struct {
	Policy, Reason string
	Samples        []Sample
}

// Sample is one value at one time.
type Sample struct {
	At    time.Time
	Value float64
}
