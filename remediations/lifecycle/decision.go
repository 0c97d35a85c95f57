package lifecycle

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/signs"
)

// Verb is what the engine must do about a target now.
type Verb string

const (
	// VerbRest means: do nothing.
	VerbRest Verb = "Rest"
	// VerbLook means: read the facts of Decision.Ask again, because the known ones are too old for
	// a decision.
	VerbLook Verb = "Look"
	// VerbHold means: hold the repair. Decision.Reason and Message say which guard holds it and why.
	VerbHold Verb = "Hold"
	// VerbIssue means: take the repair's slot in the ledger, write Decision.Record to the Node, then
	// make the call.
	VerbIssue Verb = "Issue"
	// VerbVerify means: write Decision.Record and wait for the proof, because the call has ended.
	VerbVerify Verb = "Verify"
	// VerbWait means: wait, because a repair is in flight and nothing is due.
	VerbWait Verb = "Wait"
	// VerbResume means: run again the repeatable step that the record shows as running. This
	// process does not run it yet.
	VerbResume Verb = "Resume"
	// VerbEnd means: end the repair, and add Decision.Ended to the history.
	VerbEnd Verb = "End"
	// VerbDrop means: remove the record without an entry in the history. The repair was Pending,
	// never acted, and is no longer needed.
	VerbDrop Verb = "Drop"
	// VerbReset means: remove a record, because a person asked for it. Its repair ran out of steps,
	// or it cannot be read.
	VerbReset Verb = "Reset"
)

// Verbs lists every Verb.
var Verbs = []Verb{VerbRest, VerbLook, VerbHold, VerbIssue, VerbVerify, VerbWait, VerbResume, VerbEnd, VerbDrop, VerbReset}

// Ask names the facts that must be read again before a decision. Alerts are the answers of the
// Alertmanagers. Lease is the node's lease, and Heartbeats the leases of all nodes. Survey is the
// provider's answer about the machine before a step, and Replacement its answer after one.
// Observation is the state of a sidecar or a mesh location. Witness are the policy's signs that the
// Node object does not show.
type Ask struct{ Alerts, Lease, Heartbeats, Survey, Replacement, Observation, Witness bool }

// Decision is what the engine must do about one target now, and why.
type Decision struct {
	Verb    Verb
	Reason  remediations.Reason
	Message string
	// Fleetwide reports that the cause of the hold concerns all nodes. Drydock reports such a hold
	// once, not for each node.
	Fleetwide bool
	// Concern is the part of the fleet that a fleet-wide hold affects.
	Concern remediations.Concern
	// Recheck is when to decide again even if nothing changes. Zero means only after a change.
	Recheck time.Time
	Ask     Ask
	// AskStep is the step that the provider is asked about for Ask.Survey. If Ask.Survey is false,
	// AskStep is the step that would follow if Alertmanager confirmed the alert. The engine can
	// then ask the provider in advance.
	AskStep remediations.StepOn

	Policy *remediations.Policy
	// Signs are read again in the last check before the call. At least one of them must still show
	// the fault (Ill). If the list is empty, no sign is read.
	Signs []signs.Sign
	// Record is the record to write to the Node. It is nil if nothing is to be written, or if the
	// decision removes the record: Drop, Reset, and most Ends. If the plan ran out of steps, End
	// keeps the record on the Node.
	Record *remediations.Record
	// Ended is the entry that the history gets when the repair ends.
	Ended *remediations.Entry
	// Superseded is a record to remove from the Node, for example of a machine that had the same
	// Node name before. No repair may continue it (see Journal.Superseded).
	Superseded *remediations.Record
	NodeWrite
	LedgerWrite
	// PutBack are the moves of a mesh leadership to undo, the newest first. It is set only for
	// Issue and Resume. The call then undoes these moves and makes no new one.
	PutBack []remediations.Move
	// Well is true if the target is well and the cure only needs time (see State.WellSince).
	Well bool
	// Heard is the new value of State.WellHeard if Well is true.
	Heard alerts.Heard
	// Notices are answers to people's annotations on the Node, and warnings about the Node.
	Notices []Notice
}

// NodeWrite has the further changes that a decision makes on the Node. The record and the history's
// new entry are not part of it. All changes go into one write.
type NodeWrite struct {
	// Prune are the annotation keys of alerts to remove.
	Prune []string
	// Consume are the keys of people's annotations to remove, because this decision answers them.
	Consume []string
	// Alerts are alerts to write, because the facts that Drydock stores with them changed.
	Alerts []remediations.Alert
	// Cordon makes the node unschedulable. Uncordon makes it schedulable again, if Drydock still
	// owns the cordon.
	Cordon, Uncordon bool
	// Taint sets the taint node.kubernetes.io/out-of-service, because the machine is proven gone or
	// off. Untaint removes it.
	Taint, Untaint bool
	// Announce are annotations to set, which announce the repair to other systems. Withdraw are
	// such annotations to remove if Drydock still owns them.
	Announce, Withdraw []string
	// LeftOf is the id of an ended repair. The repair's entry in the history gets the new value
	// Left. LeftOf is empty if no entry changes.
	LeftOf string
	// Left are the changes of that repair on the Node that are not undone yet.
	Left []remediations.Undo
	// History replaces the whole history, because some of its times were wrong. Nil means no change.
	History []remediations.Entry
	// Pause is a value to write into the annotation PauseKey. A person wanted to cancel a repair,
	// but the value of CancelKey is unreadable. So Drydock pauses the node instead.
	Pause string
}

// LedgerWrite has the changes that a decision makes in the ledger. The repair's slot is not part of
// it.
type LedgerWrite struct {
	// Relapsed is a cure that did not last. The ledger counts it as failed before the decision is
	// carried out.
	Relapsed *ledger.Cure
	// Stop is the reason to stop the policy until a person resets it. It is empty if the policy is
	// not to be stopped.
	Stop string
	// Allow are the names of stopped policies that a person allows again.
	Allow []string
	// FewerGPUs reports that a person accepts fewer GPUs than the ledger has for the machine.
	FewerGPUs bool
	// Ends are the ended and the cancelled repairs that the Node shows and that the ledger lacks.
	Ends []ledger.End
	// Uncancel are the fingerprints of alerts that Drydock may repair again. A person had cancelled
	// their repair, and has now reset the node.
	Uncancel []string
	// CancelsOver are the fingerprints of alerts that have ended after a person cancelled their
	// repair. Each alert is removed from the Node before the ledger forgets its cancel. Otherwise
	// the ledger would copy the cancel from the Node again.
	CancelsOver []string
}

// Forgets reports whether the ledger must forget something before the Node is written. If only the
// Node were written, a person's reset would have no effect.
func (w LedgerWrite) Forgets() bool { return len(w.Allow)+len(w.Uncancel) > 0 || w.FewerGPUs }

// Notice is an answer to a person, or a warning to people. Drydock sends it as an Event.
type Notice struct {
	Reason  NoticeReason `json:"reason"`
	Message string       `json:"message"`
}

// NoticeReason is the reason of the Event that a Notice becomes.
type NoticeReason string

const (
	// AnnotationInvalid means that a person's annotation has an unreadable value. The message says
	// which form Drydock accepts.
	AnnotationInvalid NoticeReason = "AnnotationInvalid"
	// RequestRefused means that Drydock refuses a valid request.
	RequestRefused NoticeReason = "RequestRefused"
	// NodeUncordoned means that a person removed the cordon of a repair that ran out of steps. The
	// scheduler may place pods on a node that Drydock could not cure.
	NodeUncordoned NoticeReason = "NodeUncordoned"
	// NodeWellAgain means that the node is well again although its repair ran out of steps. The
	// repair still waits for a person.
	NodeWellAgain NoticeReason = "NodeWellAgain"
	// BreakGlassExpired means that Drydock removed drydock.dev/break-glass, because its hour ended.
	BreakGlassExpired NoticeReason = "BreakGlassExpired"
)
