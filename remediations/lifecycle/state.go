package lifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/fleet"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
)

// State is all that Decide may know about one node.
type State struct {
	Config  *remediations.Config
	Node    *corev1.Node
	Journal remediations.Journal
	// Snapshot is what the Alertmanagers said; nil: they were not asked.
	Snapshot *alerts.Snapshot
	Fleet    *fleet.Fleet
	// Ledger is nil where it cannot be read; LedgerErr says why, and everything is held.
	Ledger    *ledger.Ledger
	LedgerErr error
	// LedgerLost is since when the ledger could be neither read nor saved, LeasesLost since when the leases of all nodes could
	// not be listed, and LeasesErr why; zero: they can be.
	LedgerLost, LeasesLost time.Time
	LeasesErr              error
	// Reset is what the ledger may have forgotten already by the reset that is on the Node; empty: it was not tried.
	Reset string
	// Behind is why the cache of Nodes cannot be trusted; empty: it can.
	Behind string
	// Denied is why nothing can be written on any Node: the API server refuses Drydock's own keys. Empty: it takes them.
	Denied string
	// Lease is the node's lease as last read; nil: not read.
	Lease *signs.Lease
	// Read is what was read of the signs that the watched Node does not show; a sign without an entry was not read.
	Read map[signs.Sign]signs.Testimony
	// Heartbeats is the count of all nodes' leases as last read; nil: not read.
	Heartbeats *signs.Heartbeats
	// Call is what this process knows of the call for the intent on record; nil: it did not make it.
	Call *Call
	// Survey is what the provider said of the machine before the intent; nil: it was not asked.
	Survey *remediations.Survey
	// Replacement is what it said since about a machine that is being replaced, Pods what the cluster said about pods; nil:
	// nobody was asked.
	Replacement *remediations.Replacement
	Pods        *remediations.PodProof
	// LookSince is when a look at Alertmanager was first asked for on this node's account; zero: not yet.
	LookSince time.Time
	// WellSince is when the node was first seen well without a break since; zero: it was not.
	WellSince time.Time
	// WellHeard is when the Watchdog had last been received then: only if it has come again since does the alert's end
	// say something, because a dead source's alerts end by themselves, some of them before the Watchdog does.
	WellHeard alerts.Heard
	// LookTook is how long the last look at the target took.
	LookTook time.Duration
	// NewID is a fresh identifier for a repair that this decision may begin.
	NewID string
	// Guards are asked before each repair; nil: all of them. Only a test asks fewer.
	Guards []Guard
	// Asking is told of each candidate about which the guards are asked; nil: nobody wants to know.
	Asking func(*Candidate)
}

func (s *State) OwnSilence() string {
	if r := s.Journal.Record; r != nil {
		return r.Silence
	}
	return ""
}

// Stale says that the Alertmanagers were last asked before this node wanted to know.
func (s *State) Stale() bool {
	return s.LookSince.IsZero() || s.Snapshot == nil || s.Snapshot.AskedAt.Before(s.LookSince)
}

func (s *State) Look(why string) Decision {
	return Decision{Verb: VerbLook, Ask: Ask{Alerts: true}, Message: why}
}

func (s *State) AlertBy(fingerprint string) *remediations.Alert {
	for i := range s.Journal.Alerts {
		if s.Journal.Alerts[i].Fingerprint == fingerprint {
			return &s.Journal.Alerts[i]
		}
	}
	return nil
}

// Over says that an alert that has led to nothing needs no more thought: nobody has it, and it was said to be
// resolved, or nobody has heard of it for a while.
func (s *State) Over(a *remediations.Alert, now time.Time) bool {
	return s.Snapshot.VerdictFor(a.Fingerprint, s.Config, s.OwnSilence()).Gone && s.Snapshot.BlindCause(s.Config) == "" &&
		(a.Status == remediations.StatusResolved || now.Sub(a.ReceivedAt).Abs() > remediations.UnconfirmedFor) // or received by a clock that was wrong
}
