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

// State has all facts for a decision about one node, or about a sidecar or location with its record
// on that node.
type State struct {
	Config  *remediations.Config
	Node    *corev1.Node
	Journal remediations.Journal
	// Snapshot has the answers of the Alertmanagers. It is nil if they were not asked.
	Snapshot *alerts.Snapshot
	Fleet    *fleet.Fleet
	// Ledger is nil if it cannot be read. LedgerErr then has the cause, and no repair begins.
	Ledger    *ledger.Ledger
	LedgerErr error
	// LedgerLost is when the present failure to read or save the ledger began. Zero means that
	// there is no failure.
	LedgerLost time.Time
	// LeasesLost is when the present failure to list the leases of all nodes began, and LeasesErr
	// is the cause. A zero time means that there is no failure.
	LeasesLost time.Time
	LeasesErr  error
	// Reset is the message of a person's reset that an earlier pass has begun. The ledger may
	// already be saved, so that only the write on the Node is missing. Reset is empty if there was
	// no such pass.
	Reset string
	// Behind is the reason why the cache of Nodes cannot be trusted. It is empty if it can be
	// trusted.
	Behind string
	// Denied is the API server's refusal of Drydock's keys on Nodes. It is empty if the API server
	// accepts them.
	Denied string
	// Lease is the node's lease as last read. It is nil if the lease was not read.
	Lease *signs.Lease
	// Read has the readings of signs that the Node object does not show. A sign without an entry
	// was not read.
	Read map[signs.Sign]signs.Testimony
	// Heartbeats has the count of stale node leases as last read. It is nil if it was not read.
	Heartbeats *signs.Heartbeats
	// Call is the call for the intent on record. It is nil if this process did not make that call.
	Call *Call
	// Survey is the provider's answer about the machine before the intent. It is nil if the provider
	// was not asked.
	Survey *remediations.Survey
	// Replacement is the provider's answer about a machine that is being replaced. It is nil if the
	// provider was not asked.
	Replacement *remediations.Replacement
	// Pods is the answer whether the pods that the step restarted are running again. It is nil if
	// they were not read.
	Pods *remediations.PodProof
	// LookSince is when this node first needed a fresh answer of Alertmanager. Zero means that it
	// does not need one yet.
	LookSince time.Time
	// WellSince is when the target became well. Every later observation found it well, too. Zero
	// means that it is not well.
	WellSince time.Time
	// WellHeard has, for each Alertmanager, when its last Watchdog alert before WellSince arrived.
	// The end of the repair's alert counts only after a newer Watchdog. Otherwise the end of
	// Prometheus could look like a cure: its alerts then end by themselves, some of them before the
	// Watchdog.
	WellHeard alerts.Heard
	// LookTook is how long the last observation of the target took.
	LookTook time.Duration
	// NewID is the id for a repair that this decision may begin.
	NewID string
	// Guards replaces the table of guards if it is not nil. Only tests set it.
	Guards []Guard
	// Asking is called with each candidate before the guards check it. It may be nil.
	Asking func(*Candidate)
}

// OwnSilence returns the id of the silence that this node's repair created, or "".
func (s *State) OwnSilence() string {
	if r := s.Journal.Record; r != nil {
		return r.Silence
	}
	return ""
}

// Stale reports whether this node needs newer answers of the Alertmanagers. That is true if there
// are no answers, if they are older than LookSince, or if LookSince is zero.
func (s *State) Stale() bool {
	return s.LookSince.IsZero() || s.Snapshot == nil || s.Snapshot.AskedAt.Before(s.LookSince)
}

// Look returns the decision to ask the Alertmanagers. why is its message.
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

// Over reports whether the alert has ended. No Alertmanager may have it any more. In addition,
// Alertmanager must have posted it as resolved, or must have posted nothing about it for
// UnconfirmedFor.
func (s *State) Over(a *remediations.Alert, now time.Time) bool {
	return s.Snapshot.VerdictFor(a.Fingerprint, s.Config, s.OwnSilence()).Gone && s.Snapshot.BlindCause(s.Config) == "" &&
		(a.Status == remediations.StatusResolved || now.Sub(a.ReceivedAt).Abs() > remediations.UnconfirmedFor) // Abs: a wrong clock may have written it
}
