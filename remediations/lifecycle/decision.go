package lifecycle

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
)

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
type Ask struct{ Alerts, Lease, Heartbeats, Survey, Replacement, Observation, Witness bool }

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
	// Ended is the entry that the history gets instead.
	Ended *remediations.Entry
	// Superseded is a record by which nothing goes on, and which is removed: see Journal.Superseded.
	Superseded *remediations.Record
	NodeWrite
	LedgerWrite
	// PutBack are the moves of leadership to put back, the newest first: with Issue and with Resume, instead of a move.
	PutBack []remediations.Move
	// Well says that the node was found well, all but for time: see State.WellSince.
	Well bool
	// Heard goes with Well: see State.WellHeard.
	Heard alerts.Heard
	// Notices are answers to what people wrote on the Node, and warnings about it.
	Notices []Notice
}

// NodeWrite is what a decision changes on the Node beside its record and its history's new entry, all in the same write.
type NodeWrite struct {
	// Prune are alert keys to remove, Consume are people's keys whose effect this is.
	Prune, Consume []string
	// Alerts are alert keys to write, with what they must remember.
	Alerts []remediations.Alert
	// Cordon makes the node unschedulable. Uncordon takes that back where it is still ours.
	Cordon, Uncordon bool
	// Taint marks the node out of service, since its machine is proven gone. Untaint takes that back.
	Taint, Untaint bool
	// Announce are annotations to set, Withdraw those to take off where they are still ours.
	Announce, Withdraw []string
	// LeftOf is the ended repair in the history that leaves Left on the Node from now on; empty: none changes.
	LeftOf string
	Left   []remediations.Undo
	// History is what to write for the history, where some of its times were wrong; nil: nothing.
	History []remediations.Entry
	// Pause is what to write into PauseKey: somebody wanted to stop a repair, and said it so that nobody can read it.
	Pause string
}

// LedgerWrite is what a decision changes in the ledger about the policy, beside the slot.
type LedgerWrite struct {
	// Relapsed is the cure that did not last: it is counted as failed before the decision is carried out.
	Relapsed *ledger.Cure
	// Stop is why the policy is stopped until a person resets it; Allow are stopped policies that a person lets go on.
	Stop  string
	Allow []string
	// FewerGPUs: a person accepts that the machine has fewer GPUs than the ledger remembers.
	FewerGPUs bool
	// Ends are ends of repairs and cancels that the Node says and the ledger lacks. Uncancel are the alerts, by fingerprint, whose
	// cancel a person's reset ends. CancelsOver are those whose cancel is over: the Node forgets it first, else the ledger would
	// learn it again.
	Ends                  []ledger.End
	Uncancel, CancelsOver []string
}

// Forgets says that the ledger must forget something before the Node may be written: a reset that only the Node had would not be done.
func (w LedgerWrite) Forgets() bool { return len(w.Allow)+len(w.Uncancel) > 0 || w.FewerGPUs }

// Notice is an answer to a person, or a warning to people, sent as an Event.
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
	// NodeUncordoned: pods may come to a node that Drydock could not cure, because somebody took the cordon of its policy back.
	NodeUncordoned NoticeReason = "NodeUncordoned"
	// NodeWellAgain: a node whose repair tried all steps in vain is well again, and the repair waits for a person.
	NodeWellAgain NoticeReason = "NodeWellAgain"
	// BreakGlassExpired: drydock.dev/break-glass was taken off when its hour was over.
	BreakGlassExpired NoticeReason = "GlassMended"
)
