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
	// VerbLook means: read the facts of Decision.Ask again, because they are too old.
	VerbLook Verb = "Look"
	// VerbHold means: hold the repair. Reason and Message say why.
	VerbHold Verb = "Hold"
	// VerbIssue means: take a slot in the ledger, write Decision.Record to the Node, then make the
	// call.
	VerbIssue Verb = "Issue"
	// VerbVerify means: write Decision.Record and wait for the proof.
	VerbVerify Verb = "Verify"
	// VerbWait means: wait, because a repair is in flight and nothing is due.
	VerbWait Verb = "Wait"
	// VerbResume means: run again the repeatable step that the record shows as running.
	VerbResume Verb = "Resume"
	// VerbEnd means: end the repair, and add Decision.Ended to the history.
	VerbEnd Verb = "End"
	// VerbDrop means: remove the record without an entry in the history. The repair never acted,
	// and is no longer needed.
	VerbDrop Verb = "Drop"
	// VerbReset means: remove a record, because a person asked for it.
	VerbReset Verb = "Reset"
)

// Verbs lists every Verb.
var Verbs = []Verb{VerbRest, VerbLook, VerbHold, VerbIssue, VerbVerify, VerbWait, VerbResume, VerbEnd, VerbDrop, VerbReset}

// Ask names the facts that must be read again. Lease is the node's, Heartbeats the leases of all
// nodes. Survey is the provider's answer before a step, Replacement its answer after one.
// Observation is of a sidecar or mesh location. Witness are signs that the Node does not show.
type Ask struct{ Alerts, Lease, Heartbeats, Survey, Replacement, Observation, Witness bool }

// Decision is what to do about one target now, and why.
type Decision struct {
	Verb    Verb
	Reason  remediations.Reason
	Message string
	// Fleetwide means that the hold concerns all nodes, so that it is reported once.
	Fleetwide bool
	// Concern is the part of the fleet that a fleet-wide hold affects.
	Concern remediations.Concern
	// Recheck is when to decide again even if nothing changes. Zero means only after a change.
	Recheck time.Time
	Ask     Ask
	// AskStep is the step of Ask.Survey. If Ask.Survey is false, it is the step that would follow
	// if Alertmanager confirmed the alert: the provider can be asked in advance.
	AskStep remediations.StepOn

	Policy *remediations.Policy
	// Signs are read again right before the call. If there are any, at least one must still show
	// the fault (Ill).
	Signs []signs.Sign
	// Record is nil if nothing is to be written, or if the record is removed.
	Record *remediations.Record
	// Ended is the new entry of the history.
	Ended *remediations.Entry
	// Superseded is a record to remove from the Node that no repair may continue (see
	// Journal.Superseded).
	Superseded *remediations.Record
	NodeWrite
	LedgerWrite
	// PutBack are the moves of a mesh leadership to undo, newest first, in place of a new move.
	PutBack []remediations.Move
	// Well is true if the target is well and the cure only needs time.
	Well  bool
	Heard alerts.Heard
	// Notices are answers to people's annotations on the Node, and warnings about the Node.
	Notices []Notice
}

// NodeWrite has the further changes on the Node. All go into one write.
type NodeWrite struct {
	// Prune are the annotations of alerts to remove.
	Prune []string
	// Consume are people's annotations to remove, because this decision answers them.
	Consume []string
	// Alerts are alerts to write, because what Drydock stores with them has changed.
	Alerts []remediations.Alert
	// Uncordon makes the node schedulable, if Drydock still owns the cordon.
	Cordon, Uncordon bool
	// Taint sets node.kubernetes.io/out-of-service, because the machine is proven gone or off.
	Taint, Untaint bool
	// These annotations announce the repair to other systems. Withdraw removes those that Drydock
	// still owns.
	Announce, Withdraw []string
	// LeftOf is the ended repair whose entry in the history gets the new value Left, or empty.
	LeftOf string
	// Left are the ended repair's changes on the Node that are not undone yet.
	Left []remediations.Undo
	// History replaces the whole history, because some times were wrong. Nil means no change.
	History []remediations.Entry
	// Pause pauses the node. A person wanted to cancel a repair, but the value of CancelKey is
	// unreadable.
	Pause string
}

// LedgerWrite has the changes in the ledger, except the repair's slot.
type LedgerWrite struct {
	// Relapsed is a cure that did not last. The ledger counts it before the decision is carried
	// out.
	Relapsed *ledger.Cure
	// Stop is why the policy stops until a person resets it, or empty.
	Stop string
	// Allow are stopped policies that a person allows again.
	Allow []string
	// FewerGPUs means that a person accepts fewer GPUs than the machine had.
	FewerGPUs bool
	// Ends are repairs that the Node shows and the ledger lacks.
	Ends []ledger.End
	// Uncancel are alerts whose repair a person had cancelled, before the person reset the node.
	Uncancel []string
	// CancelsOver are alerts that have ended after a person cancelled their repair. Each is removed
	// from the Node before the ledger forgets its cancel. Otherwise the ledger would copy it again.
	CancelsOver []string
}

// Forgets reports whether the ledger must forget something before the Node is written. Otherwise a
// person's reset would have no effect.
func (w LedgerWrite) Forgets() bool { return len(w.Allow)+len(w.Uncancel) > 0 || w.FewerGPUs }

// Notice is an answer to a person, or a warning. It becomes an Event.
type Notice struct {
	Reason  NoticeReason `json:"reason"`
	Message string       `json:"message"`
}

// NoticeReason is the reason of a Notice's Event.
type NoticeReason string

const (
	// AnnotationInvalid means that a person's annotation is unreadable.
	AnnotationInvalid NoticeReason = "AnnotationInvalid"
	// RequestRefused means that Drydock refuses a valid request.
	RequestRefused NoticeReason = "RequestRefused"
	// NodeUncordoned means that a person removed the cordon of a node that Drydock could not cure.
	// The scheduler may place pods there.
	NodeUncordoned NoticeReason = "NodeUncordoned"
	// NodeWellAgain means that the node became well after its repair ran out of steps. The repair
	// still waits for a person.
	NodeWellAgain NoticeReason = "NodeWellAgain"
	// BreakGlassExpired means that Drydock removed drydock.dev/break-glass after its hour.
	BreakGlassExpired NoticeReason = "BreakGlassExpired"
)
