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

// State is everything that Decide may know about one node.
type State struct {
	Config  *remediations.Config
	Node    *corev1.Node
	Journal remediations.Journal
	// Snapshot has the answers of the Alertmanagers; nil: they were not asked.
	Snapshot *alerts.Snapshot
	Fleet    *fleet.Fleet
	// Ledger is nil if it cannot be read. LedgerErr says why, and all repairs are held.
	Ledger    *ledger.Ledger
	LedgerErr error
	// LedgerLost is since when the ledger could be neither read nor saved. LeasesLost is since when
	// the leases of all nodes could not be listed, and LeasesErr says why. Zero: no failure.
	LedgerLost, LeasesLost time.Time
	LeasesErr              error
	// Reset is what the ledger may already have forgotten for the reset on the Node; empty: no
	// attempt was made.
	Reset string
	// Behind is why the cache of Nodes cannot be trusted; empty: it can.
	Behind string
	// Denied is why no Node can be written: the API server refuses Drydock's own keys. Empty: it
	// accepts them.
	Denied string
	// Lease is the node's lease as last read; nil: not read.
	Lease *signs.Lease
	// Read has the signs that were read because the watched Node does not show them. A sign without
	// an entry was not read.
	Read map[signs.Sign]signs.Testimony
	// Heartbeats is the count of all nodes' leases as last read; nil: not read.
	Heartbeats *signs.Heartbeats
	// Call is what this process knows of the call for the intent on record; nil: this process did
	// not make it.
	Call *Call
	// Survey is the provider's answer about the machine before the intent; nil: the provider was
	// not asked.
	Survey *remediations.Survey
	// Replacement is the provider's answer about a machine that is being replaced. Pods is the
	// cluster's answer about pods. nil: not asked.
	Replacement *remediations.Replacement
	Pods        *remediations.PodProof
	// LookSince is when this node first needed a fresh answer of Alertmanager; zero: it does not
	// need one yet.
	LookSince time.Time
	// WellSince is when the node was first seen well, without interruption since; zero: it was not.
	WellSince time.Time
	// WellHeard is the arrival of the last Watchdog at that time. The alert's end counts only after
	// a newer Watchdog, because a dead source's alerts end by themselves, some of them before the
	// Watchdog does.
	WellHeard alerts.Heard
	// LookTook is how long the last observation of the target took.
	LookTook time.Duration
	// NewID is a new id for a repair that this decision may begin.
	NewID string
	// Guards are the guards to ask before each repair; nil: all guards. Only a test sets fewer.
	Guards []Guard
	// Asking is called with each candidate before its guards are asked; nil: not called.
	Asking func(*Candidate)
}

func (s *State) OwnSilence() string {
	if r := s.Journal.Record; r != nil {
		return r.Silence
	}
	return ""
}

// Stale reports whether the Alertmanagers were last asked before this node needed their answer.
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

// Over reports whether an alert without a repair needs no more attention. No Alertmanager has it,
// and either it was reported resolved, or no post about it came for a while.
func (s *State) Over(a *remediations.Alert, now time.Time) bool {
	return s.Snapshot.VerdictFor(a.Fingerprint, s.Config, s.OwnSilence()).Gone && s.Snapshot.BlindCause(s.Config) == "" &&
		(a.Status == remediations.StatusResolved || now.Sub(a.ReceivedAt).Abs() > remediations.UnconfirmedFor) // Abs: a wrong clock may have written it
}
