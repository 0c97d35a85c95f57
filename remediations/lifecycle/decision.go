package lifecycle

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
)

// Verb is what to do about a node now.
type Verb string

const (
	// VerbRest: nothing is to be done.
	VerbRest Verb = "Rest"
	// VerbLook: the known facts are too old for a decision. Ask says what to read again.
	VerbLook Verb = "Look"
	// VerbHold: a guard holds the repair. Reason and Message say which guard and why.
	VerbHold Verb = "Hold"
	// VerbIssue: take the slot, write Record, then make the call.
	VerbIssue Verb = "Issue"
	// VerbVerify: the call has ended. Write Record and wait for proof.
	VerbVerify Verb = "Verify"
	// VerbWait: a repair is in flight, and nothing is due.
	VerbWait Verb = "Wait"
	// VerbResume: a repeatable step is under way according to the record, and this process does not
	// run it yet.
	VerbResume Verb = "Resume"
	// VerbEnd: the repair has ended. Ended says how.
	VerbEnd Verb = "End"
	// VerbDrop: a Pending repair that never acted is no longer wanted. Its record is removed
	// without an entry in the history.
	VerbDrop Verb = "Drop"
	// VerbReset: a person wants Drydock to forget an exhausted or malformed record.
	VerbReset Verb = "Reset"
)

// Verbs is the closed list.
var Verbs = []Verb{VerbRest, VerbLook, VerbHold, VerbIssue, VerbVerify, VerbWait, VerbResume, VerbEnd, VerbDrop, VerbReset}

// Ask is what must be read again before a decision: the Alertmanagers, the node's lease, or all
// leases. Survey is the provider's answer about the machine before a step, and Replacement its
// answer after one. Observation is the state of a sidecar or a mesh location. Witness are the signs
// that the watched Node does not show.
type Ask struct{ Alerts, Lease, Heartbeats, Survey, Replacement, Observation, Witness bool }

// Decision is what to do about one node, and why.
type Decision struct {
	Verb    Verb
	Reason  remediations.Reason
	Message string
	// Fleetwide: the cause of the hold is not the node's own, and is reported once for all nodes.
	Fleetwide bool
	// Recheck is when to decide again even if nothing changes; zero: only on a change.
	Recheck time.Time
	Ask     Ask
	// AskStep is the step that Ask.Survey is about. Without Ask.Survey it is the step that follows
	// if Alertmanager confirms the alert, so that the provider can be asked meanwhile.
	AskStep remediations.StepOn

	Policy *remediations.Policy
	// Signs are the signs for the last look: one of them must still be Ill before the side effect.
	// None: no sign is read.
	Signs []signs.Sign
	// Record is the record to write. It is nil with End, Drop and Reset, which remove the record,
	// and if nothing is to be written.
	Record *remediations.Record
	// Ended is the entry that the history gets when the record is removed.
	Ended *remediations.Entry
	// Superseded is a record that no repair continues from, and that is removed: see
	// Journal.Superseded.
	Superseded *remediations.Record
	NodeWrite
	LedgerWrite
	// PutBack are the moves of leadership to undo, the newest first. Issue and Resume have them
	// instead of a move.
	PutBack []remediations.Move
	// Well reports that the node was found well, and only time is missing: see State.WellSince.
	Well bool
	// Heard accompanies Well: see State.WellHeard.
	Heard alerts.Heard
	// Notices are answers to people's annotations on the Node, and warnings about the Node.
	Notices []Notice
}

// NodeWrite is what a decision changes on the Node, in the same write as the record and the
// history's new entry.
type NodeWrite struct {
	// Prune are keys of alerts to remove. Consume are people's keys that this decision answers.
	Prune, Consume []string
	// Alerts are alerts to write, each with what it must remember.
	Alerts []remediations.Alert
	// Cordon makes the node unschedulable. Uncordon undoes this if the cordon is still Drydock's.
	Cordon, Uncordon bool
	// Taint marks the node out of service, because its machine is proven gone. Untaint removes the
	// mark.
	Taint, Untaint bool
	// Announce are annotations to set. Withdraw are annotations to remove if they are still
	// Drydock's.
	Announce, Withdraw []string
	// LeftOf is the ended repair whose Left in the history changes; empty: none.
	LeftOf string
	Left   []remediations.Undo
	// History is the history to write if some of its times were wrong; nil: no write.
	History []remediations.Entry
	// Pause is what to write into PauseKey: a person wanted to stop a repair, but wrote a value
	// that cannot be read.
	Pause string
}

// LedgerWrite is what a decision changes in the ledger about the policy, beside the slot.
type LedgerWrite struct {
	// Relapsed is the cure that did not last. The ledger counts it as failed before the decision is
	// carried out.
	Relapsed *ledger.Cure
	// Stop is why the policy is stopped until a person resets it. Allow are stopped policies that a
	// person lets continue.
	Stop  string
	Allow []string
	// FewerGPUs: a person accepts that the machine has fewer GPUs than the ledger remembers.
	FewerGPUs bool
	// Ends are ends of repairs and cancels that the Node has and the ledger lacks. Uncancel are the
	// fingerprints of alerts whose cancel a person's reset ends. CancelsOver are alerts whose
	// cancel has ended. The Node forgets such a cancel first, because the ledger would otherwise
	// learn it again.
	Ends                  []ledger.End
	Uncancel, CancelsOver []string
}

// Forgets reports whether the ledger must forget something before the Node is written. If only the
// Node were written, the reset would not take effect.
func (w LedgerWrite) Forgets() bool { return len(w.Allow)+len(w.Uncancel) > 0 || w.FewerGPUs }

// Notice is an answer to a person, or a warning to people. Drydock sends it as an Event.
type Notice struct {
	Reason  NoticeReason `json:"reason"`
	Message string       `json:"message"`
}

// NoticeReason is an Event's reason.
type NoticeReason string

const (
	// AnnotationInvalid: the value cannot be read. The message explains the form.
	AnnotationInvalid NoticeReason = "AnnotationInvalid"
	// RequestRefused: the request is valid, but Drydock does not carry it out.
	RequestRefused NoticeReason = "RequestRefused"
	// NodeUncordoned: pods may be scheduled to a node that Drydock could not cure, because the
	// policy's cordon was removed.
	NodeUncordoned NoticeReason = "NodeUncordoned"
	// NodeWellAgain: a node whose repair tried all steps in vain is well again, and the repair
	// waits for a person.
	NodeWellAgain NoticeReason = "NodeWellAgain"
	// BreakGlassExpired: Drydock removed drydock.dev/break-glass when its hour had ended.
	BreakGlassExpired NoticeReason = "BreakGlassExpired"
)
