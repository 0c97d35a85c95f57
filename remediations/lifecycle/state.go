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
	Word    *alerts.Snapshot
	Fleet   *fleet.Fleet
	// Ledger is nil where it cannot be read; LedgerErr says why, and everything is held.
	Ledger    *ledger.Ledger
	LedgerErr error
	// LedgerLost is since when the ledger could be neither read nor saved, LeasesLost since when the leases of all nodes could
	// not be listed, and LeasesErr why; zero: they can be.
	LedgerLost, LeasesLost time.Time
	LeasesErr              error
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
	WellHeard time.Time
	// NewID is a fresh identifier for a repair that this decision may begin.
	NewID string
	// Guards are asked before each repair; nil: all of them. Only a test asks fewer.
	Guards []Guard
	// Asking is told of each candidate about which the guards are asked; nil: nobody wants to know.
	Asking func(*Candidate)
}

// Verb is what is to be done about a node now.
type Verb string

const (
	// VerbRest: nothing is asked.
	VerbRest Verb = "Rest"
	// VerbLook: what is known is too old to decide by; Ask says what to read again.
	VerbLook Verb = "Look"
	// VerbHold: a guard holds; Reason and Message say which and why.
	VerbHold Verb = "Hold"
	// VerbIssue: take the slot, write Record, then act.
	VerbIssue Verb = "Issue"
	// VerbVerify: the call is over; write Record and wait for proof.
	VerbVerify Verb = "Verify"
	// VerbWait: in flight, and nothing is due.
	VerbWait Verb = "Wait"
	// VerbResume: a repeatable step is on record as under way, and this process is not doing it yet.
	VerbResume Verb = "Resume"
	// VerbEnd: the repair is over; Ended says how.
	VerbEnd Verb = "End"
	// VerbDrop: a Pending repair that never acted is no longer wanted; its record goes without a trace in the history.
	VerbDrop Verb = "Drop"
	// VerbReset: a person wants an exhausted or malformed record forgotten.
	VerbReset Verb = "Reset"
)

// Verbs is the closed list.
var Verbs = []Verb{VerbRest, VerbLook, VerbHold, VerbIssue, VerbVerify, VerbWait, VerbResume, VerbEnd, VerbDrop, VerbReset}

// Ask is what must be read again before a decision can be made: the Alertmanagers, the node's lease, all leases; and of
// the provider, the machine before a step, and whether it was replaced; and how a sidecar is, or a location of the mesh; and
// the signs of the policy's witness that the watched Node does not show.
type Ask struct{ Alerts, Lease, Heartbeats, Survey, Replacement, Sighting, Witness bool }

// Decision is what is to be done about one node, and why.
type Decision struct {
	Verb    Verb
	Reason  remediations.Reason
	Message string
	// Fleetwide: what holds it is not the node's own, and is told once for all.
	Fleetwide bool
	// Recheck is when to decide again though nothing changed; zero: only on a change.
	Recheck time.Time
	Ask     Ask
	// AskStep is the step about which Ask.Survey is. Without that, it is the one about which it will be if Alertmanager
	// confirms the alert, so that the provider may be asked meanwhile.
	AskStep remediations.StepOn

	Policy *remediations.Policy
	// Signs are those of which one must still say Ill at the last look before the side effect; none: nobody is asked.
	Signs []signs.Sign
	// Record is the record to write; nil with End, Drop and Reset, which remove it, and where nothing is to be written.
	Record *remediations.Record
	Ended  *remediations.Entry
	// Relapsed is the cure that did not last: it is counted as failed before the decision is carried out.
	Relapsed *ledger.Cure
	// Prune are alert keys to remove in the same write, Consume are people's keys whose effect this is.
	Prune, Consume []string
	// Alerts are alert keys to write, with what they must remember.
	Alerts []remediations.Alert
	// Cordon makes the node unschedulable in the same write. Uncordon takes that back where it is still ours.
	Cordon, Uncordon bool
	// PutBack are the moves of leadership to put back, the newest first: with Issue and with Resume, instead of a move.
	PutBack []remediations.Move
	// Taint marks the node out of service, since its machine is proven gone. Untaint takes that back.
	Taint, Untaint bool
	// Announce are annotations to set, Withdraw those to take off where they are still ours.
	Announce, Withdraw []string
	// LeftOf is the ended repair in the history that leaves Left on the Node from now on; empty: none changes.
	LeftOf string
	Left   []remediations.Undo
	// History is what to write for the history on the Node, where some of its times were wrong; nil: nothing.
	History []remediations.Entry
	// Stop is why the policy is stopped until a person resets it; Allow are stopped policies that a person lets go on.
	Stop  string
	Allow []string
	// Well says that the node was found well, all but for time: see State.WellSince.
	Well bool
	// Heard goes with Well: see State.WellHeard.
	Heard time.Time
	// Pause is what to write into PauseKey: somebody wanted to stop a repair, and said it so that nobody can read it.
	Pause string
	// Notices are answers to what people wrote on the Node.
	Notices []Notice
}

// Notice is an answer to a person, sent as an Event.
type Notice struct {
	Reason  NoticeReason `json:"reason"`
	Message string       `json:"message"`
}

// NoticeReason is an Event's reason.
type NoticeReason string

const (
	// AnnotationInvalid: the value cannot be understood; the message says how to write it.
	AnnotationInvalid NoticeReason = "AnnotationInvalid"
	// RequestRefused: the request is understood, and nothing comes of it.
	RequestRefused NoticeReason = "RequestRefused"
	// GlassMended: drydock.dev/break-glass was taken off when its hour was over.
	GlassMended NoticeReason = "GlassMended"
)

func (s *State) OwnSilence() string {
	if r := s.Journal.Record; r != nil {
		return r.Silence
	}
	return ""
}

// Stale says that the Alertmanagers were last asked before this node wanted to know.
func (s *State) Stale() bool {
	return s.LookSince.IsZero() || s.Word == nil || s.Word.AskedAt.Before(s.LookSince)
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
	return s.Word.VerdictFor(a.Fingerprint, s.Config, s.OwnSilence()).Gone && s.Word.BlindCause(s.Config) == "" &&
		(a.Status == remediations.StatusResolved || now.Sub(a.ReceivedAt).Abs() > remediations.UnconfirmedFor) // or received by a clock that was wrong
}
