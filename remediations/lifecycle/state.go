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

// State has all facts for a decision about one node, or a sidecar or location with its record
// there.
type State struct {
	Config  *remediations.Config
	Node    *corev1.Node
	Journal remediations.Journal
	// Snapshot has the answers of the Alertmanagers, or nil.
	Snapshot *alerts.Snapshot
	Fleet    *fleet.Fleet
	// Ledger is nil if it cannot be read. LedgerErr then says why, and no repair begins.
	Ledger    *ledger.Ledger
	LedgerErr error
	// LedgerLost is when the present failure of the ledger began, or zero.
	LedgerLost time.Time
	// LeasesLost is when the present failure to list all leases began, or zero.
	LeasesLost time.Time
	LeasesErr  error
	// Reset is the message of a person's reset that an earlier pass has begun, or empty. The ledger
	// may already be saved, and only the write on the Node may be missing.
	Reset string
	// Behind is why the cache of Nodes cannot be trusted, or empty.
	Behind string
	// Denied is how the API server refuses Drydock's keys on Nodes, or empty.
	Denied string
	// Lease is nil if it was not read.
	Lease *signs.Lease
	// Read has the signs that the Node object does not show. A sign without an entry was not read.
	Read map[signs.Sign]signs.Testimony
	// Heartbeats counts stale node leases, or is nil.
	Heartbeats *signs.Heartbeats
	// Call is nil if this process did not make the call on record.
	Call *Call
	// Survey is the provider's answer before the intent, or nil.
	Survey *remediations.Survey
	// Replacement is the provider's answer about a machine that is being replaced, or nil.
	Replacement *remediations.Replacement
	// Pods is the answer whether the pods that the step restarted run again, or nil.
	Pods *remediations.PodProof
	// LookSince is when this node first needed a fresh answer of Alertmanager, or zero.
	LookSince time.Time
	// WellSince is when the target became well. Every later observation found it well. Zero means
	// not well.
	WellSince time.Time
	// WellHeard has, for each Alertmanager, when its last Watchdog alert before WellSince arrived.
	// The end of the repair's alert counts only after a newer Watchdog: if Prometheus dies, alerts
	// end by themselves, some of them before the Watchdog.
	WellHeard alerts.Heard
	LookTook  time.Duration
	NewID     string
	// Guards replaces the table of guards. Only tests set it.
	Guards []Guard
	// Asking is called with each candidate before the guards. It may be nil.
	Asking func(*Candidate)
}

// OwnSilence returns the silence that this node's repair created, or "".
func (s *State) OwnSilence() string {
	if r := s.Journal.Record; r != nil {
		return r.Silence
	}
	return ""
}

// Stale reports whether this node needs newer answers of the Alertmanagers. A zero LookSince means
// yes.
func (s *State) Stale() bool {
	return s.LookSince.IsZero() || s.Snapshot == nil || s.Snapshot.AskedAt.Before(s.LookSince)
}

// Look returns the decision to ask the Alertmanagers.
func (s *State) Look(why string) Decision {
	return Decision{Verb: VerbLook, Ask: Ask{Alerts: true}, Message: why}
}

// AlertBy returns the Node's alert with the fingerprint, or nil.
func (s *State) AlertBy(fingerprint string) *remediations.Alert {
	for i := range s.Journal.Alerts {
		if s.Journal.Alerts[i].Fingerprint == fingerprint {
			return &s.Journal.Alerts[i]
		}
	}
	return nil
}

// Over reports whether the alert has ended: no Alertmanager has it, and it was posted as resolved,
// or nothing was posted about it for UnconfirmedFor.
func (s *State) Over(a *remediations.Alert, now time.Time) bool {
	return s.Snapshot.VerdictFor(a.Fingerprint, s.Config, s.OwnSilence()).Gone && s.Snapshot.BlindCause(s.Config) == "" &&
		(a.Status == remediations.StatusResolved || now.Sub(a.ReceivedAt).Abs() > remediations.UnconfirmedFor) // Abs: a wrong clock may have written it
}
