package report

import (
	"time"

	"drydock.dev/drydock/remediations/ledger"
)

// Input is all that a report is made of.
type Input struct {
	From, To time.Time
	// Of says which nodes were asked for; empty: all.
	Of    string
	Nodes []Node
	// Ledger is nil where it could not be read; LedgerProblem says why.
	Ledger        *ledger.Ledger
	LedgerProblem string
	// Series is nil where no Prometheus answered; SeriesProblem says why, where one was asked.
	Series        *Series
	SeriesProblem string
}

// Node is one Node's name and annotations, of which only Drydock's own are read.
type Node struct {
	Name        string
	Annotations map[string]string
}

// Series are Drydock's metrics in the report's time, at times that are Step apart.
type Series struct {
	Step time.Duration
	// InFlight is how many repairs are Acting or Verifying. Where it has no sample, nothing was measured.
	InFlight []Sample
	Holds    []HoldSeries
	// Open are the samples at which a breaker was open, by its scope.
	Open map[string][]Sample
}

// HoldSeries is how many repairs a guard held, of each policy.
type HoldSeries struct {
	Policy, Reason string
	Samples        []Sample
}

// Sample is one value at one time.
type Sample struct {
	At    time.Time
	Value float64
}
