package remediations

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// RecordVersion is the version of everything that Drydock writes on a Node and in the ledger.
const RecordVersion = 1

// idLength is that of a repair's id.
const idLength = 6

// maxPolicyName bounds the policy of a record: a policy's name, or remediation/ and what a person asked for.
const maxPolicyName = 512

// MaxRecordBytes bounds one record; a longer one was not written by Drydock.
const MaxRecordBytes = 8 << 10

// Phase is where a repair stands.
type Phase string

const (
	// PhasePending: matched; held by a guard, or between attempts. It occupies no slot and denies nobody anything.
	PhasePending Phase = "Pending"
	// PhaseActing: the intent is written, the side effect was issued or is about to be.
	PhaseActing Phase = "Acting"
	// PhaseVerifying: waiting for proof.
	PhaseVerifying Phase = "Verifying"
	// PhaseExhausted: the plan has run out; a person must look.
	PhaseExhausted Phase = "Exhausted"
)

// InFlight says that a repair in this phase occupies its node.
func (p Phase) InFlight() bool { return p == PhaseActing || p == PhaseVerifying }

// CallOutcome is what is known of a call to a provider. Absent: not known to have been sent.
type CallOutcome string

const (
	CallAccepted CallOutcome = "accepted"
	// CallRefused: the provider certainly did nothing.
	CallRefused CallOutcome = "refused"
	// CallUnknown: perhaps done.
	CallUnknown CallOutcome = "unknown"
)

// Record is the repair under way on a Node, under RepairPrefix + its target. Times are RFC 3339, UTC.
type Record struct {
	V      int    `json:"v"`
	ID     string `json:"id"`
	Policy string `json:"policy"`
	Cause  Cause  `json:"cause"`
	// Plan is the digest of the plan that a person is asked to approve, and of the machine; absent: the policy asks nobody.
	Plan string `json:"plan,omitempty"`
	// Target names what is repaired, where its kind has no field of its own here; absent: the repair is the node's, or of one that has.
	Target string `json:"target,omitempty"`
	// Pod is whose sidecar is repaired.
	Pod *Pod `json:"pod,omitempty"`
	// Location is whose leader is repaired, Moves the changes of leadership that were issued, oldest first, and Back since
	// when they are being put back. Absent: the repair is not a leader's; nothing is put back.
	Location string     `json:"location,omitempty"`
	Moves    []Move     `json:"moves,omitempty"`
	Back     *time.Time `json:"back,omitempty"`
	// Also are further alerts on the node that were firing when the record was last written. They get no repair beside
	// this one; what is left of them when it has ended begins one of its own.
	Also []string `json:"also,omitempty"`
	// After is the repair that this one goes on from, since its alert came back; nil: none.
	After *After `json:"after,omitempty"`
	Phase Phase  `json:"phase"`
	// Step is the step that is being done, or that comes next while Pending.
	Step StepRef `json:"step"`
	// Done are the attempts already issued, oldest first.
	Done Attempts `json:"done,omitempty"`
	// Began is when the repair was first recorded, Since when its phase began, Deadline when the phase is over.
	Began    time.Time `json:"began"`
	Since    time.Time `json:"since"`
	Deadline time.Time `json:"deadline"`
	// Intent is the last attempt that was issued.
	Intent *Intent `json:"intent,omitempty"`
	// Hold is what keeps the next side effect back.
	Hold *Hold `json:"hold,omitempty"`
	// Passed are the steps of the plan that were passed over, Evidence the last words of the host, before a step on it.
	Passed   []Passed `json:"passed,omitempty"`
	Evidence string   `json:"evidence,omitempty"`
	// Note is how far a step is that takes its time, and what is in its way.
	Note string `json:"note,omitempty"`
	// Unreached is how many calls in a row could not be made for the attempt that comes next, Alone how many of them in a row, up to
	// the last, failed because of this machine. An outage of the whole provider begins Alone anew.
	Unreached int `json:"unreached,omitempty"`
	Alone     int `json:"alone,omitempty"`
	// Undo is what Drydock did to the Node and must take back.
	Undo []Undo `json:"undo,omitempty"`
	// Silence is the id of the silence that Drydock made for this repair.
	Silence string `json:"silence,omitempty"`
	// WellSince is since when the node of an exhausted repair has been well; zero: it is not well, or Drydock has not proven it yet.
	WellSince time.Time `json:"wellSince,omitzero"`
}

// Cause is why the repair exists: an alert's fingerprint, or a person's request.
type Cause struct {
	Alert   string `json:"alert,omitempty"`
	Request string `json:"request,omitempty"`
}

func (c Cause) String() string {
	if c.Request != "" {
		return "request " + c.Request
	}
	return "alert " + c.Alert
}

// StepRef points at one attempt of one step of the plan: the step's index from 0, its name, the attempt from 1.
type StepRef struct {
	Index   int    `json:"index"`
	Name    string `json:"name"`
	Attempt int    `json:"attempt"`
}

func (s StepRef) String() string { return fmt.Sprintf("%s:%d", s.Name, s.Attempt) }

// Intent is written before the call. Without an outcome it counts as issued.
type Intent struct {
	// ID is the repair's id, the step's index and the attempt: one for each side effect.
	ID string    `json:"id"`
	At time.Time `json:"at"`
	// BootID, UID and ProviderID are those of the machine before the call; the proof is that they changed, or did not. For
	// a sidecar, UID is the pod's.
	BootID     string `json:"bootID,omitempty"`
	UID        string `json:"uid,omitempty"`
	ProviderID string `json:"providerID,omitempty"`
	// GPUs is how many GPUs the machine had before the fault, by its label; zero: nothing says so.
	GPUs int `json:"gpus,omitempty"`
	// Started is when the container of the sidecar had started before the call; zero: not known. A start closes the gate again in
	// the same pod.
	Started time.Time `json:"started,omitzero"`
	// Task is the id of the sidecar's task: a fresh one for each attempt, since a sidecar never does a known one again.
	Task string `json:"task,omitempty"`
	// Successor is the node that is to lead the location.
	Successor string      `json:"successor,omitempty"`
	Outcome   CallOutcome `json:"outcome,omitempty"`
	// Why is the provider's word where the outcome is not accepted.
	Why string `json:"why,omitempty"`
	// SpentSeconds is how long earlier runs of a step took that takes its time, and that was interrupted since.
	SpentSeconds int `json:"spentSeconds,omitempty"`
	// Provider is which of several was asked about the step, and called; absent: one alone carries it out.
	Provider string `json:"provider,omitempty"`
	// Before is what the provider found before the step, where its proof needs it.
	Before Before `json:"before,omitempty"`
	// Zone, Pool and ControlPlane are where the node stood by its labels when the repair drained it. The repair counts there until it
	// ends, however the node is labelled meanwhile. Absent: it drained nothing.
	Zone         string `json:"zone,omitempty"`
	Pool         string `json:"pool,omitempty"`
	ControlPlane bool   `json:"controlPlane,omitempty"`
}

// Hold is what keeps a repair back.
type Hold struct {
	Reason  Reason     `json:"reason"`
	Message string     `json:"message"`
	Since   time.Time  `json:"since"`
	Until   *time.Time `json:"until,omitempty"`
	// Alone: each answer since Since says that the provider cannot be asked about this machine, and none that this is so of others.
	// Absent: that is not known, and no step is skipped for it.
	Alone bool `json:"alone,omitempty"`
}

// Undo is one thing that Drydock did to a Node: {"kind":"cordon"}, {"kind":"taint","key":"…"} or {"kind":"annotation","key":"…"}.
type Undo struct {
	Kind string    `json:"kind"`
	Key  string    `json:"key,omitempty"`
	At   time.Time `json:"at"`
}

// Kinds of Undo: UndoCordon sets spec.unschedulable back, UndoTaint takes away the taint with the Undo's Key, UndoAnnotation
// the announcement with that key, UndoLeader puts back the move on to the node that is the Undo's Key.
const (
	UndoCordon = "cordon"
	UndoTaint  = "taint"

	UndoAnnotation = "annotation"

	UndoLeader = "leader"
)

// Set says whether the taint is the one that Drydock set and recorded. Its time alone tells: managedFields cannot say who set a
// taint, because all taints are one field to them. Only whoever sets a taint gives it a time, and kubectl gives none. Whole
// seconds are compared, because the API server keeps no more.
func (u Undo) Set(t corev1.Taint) bool {
	return u.Kind == UndoTaint && t.Key == u.Key && t.TimeAdded != nil && t.TimeAdded.Unix() == u.At.Unix()
}

// Clone copies a record, so that a transition never changes the one that was read.
func (r *Record) Clone() *Record {
	c := *r
	c.Done = append(Attempts(nil), r.Done...)
	c.Also = append([]string(nil), r.Also...)
	c.Undo = append([]Undo(nil), r.Undo...)
	c.Passed = append([]Passed(nil), r.Passed...)
	if r.Pod != nil {
		p := *r.Pod
		c.Pod = &p
	}
	if r.After != nil {
		a := *r.After
		c.After = &a
	}
	c.Moves = append([]Move(nil), r.Moves...)
	if r.Back != nil {
		b := *r.Back
		c.Back = &b
	}
	if r.Intent != nil {
		i := *r.Intent
		c.Intent = &i
	}
	if r.Hold != nil {
		h := *r.Hold
		c.Hold = &h
	}
	return &c
}

// DecodeRecord reads a record. Anything that this version would not itself have written is an error: the node is then
// held with RecordMalformed and its bytes are left alone until a person resets it.
func (g Registry) DecodeRecord(value string) (*Record, error) {
	if len(value) > MaxRecordBytes {
		return nil, fmt.Errorf("the record has %d bytes, Drydock writes at most %d", len(value), MaxRecordBytes)
	}
	var v struct {
		V int `json:"v"`
	}
	if err := decodeLoose(value, &v); err != nil {
		return nil, fmt.Errorf("the record is not JSON: %w", err)
	}
	if v.V != RecordVersion {
		return nil, fmt.Errorf("the record has version %d, this Drydock knows version %d", v.V, RecordVersion)
	}
	var r Record
	if err := DecodeStrict(value, &r); err != nil {
		return nil, fmt.Errorf("the record is not readable: %w", err)
	}
	return &r, r.Validate(g)
}

// DecodeRecordOf reads the record under the annotation's key, and says where it is of another target than that.
func (g Registry) DecodeRecordOf(key, value string) (*Record, error) {
	r, err := g.DecodeRecord(value)
	if err != nil {
		return nil, err
	}
	of, known := kindOfKey(key)
	if !known || !g.repairs(of) {
		of = KindNode
	}
	by, _ := g.Of(r.Step.Name)
	if kind := r.kind(by); kind != of || (kind != KindNode && KeyOf(kind, r.name()) != key) {
		return nil, fmt.Errorf("the record is of another target than its key")
	}
	return r, nil
}

// DecodeRecord is that of a Drydock to which nobody added a remediation.
func DecodeRecord(value string) (*Record, error) { return Registry(nil).DecodeRecord(value) }

// DecodeRecordOf is that of a Drydock to which nobody added a remediation.
func DecodeRecordOf(key, value string) (*Record, error) {
	return Registry(nil).DecodeRecordOf(key, value)
}

func (r *Record) Validate(g Registry) error {
	switch r.Phase {
	case PhasePending, PhaseActing, PhaseVerifying, PhaseExhausted:
	default:
		return fmt.Errorf("the record's phase %q is unknown", clip(string(r.Phase), 40))
	}
	switch {
	case r.ID == "" || len(r.ID) > idLength || !ofIDLetters(r.ID):
		// A denial prints the id in a command, for people to paste.
		return fmt.Errorf("the record's id %q is not an id: an id has %d lower-case letters and digits", clip(r.ID, 20), idLength)
	case r.Policy == "" || clip(r.Policy, maxPolicyName) != r.Policy:
		return fmt.Errorf("the record's policy %q is not the name of a policy", clip(r.Policy, 40))
	case (r.Cause.Alert == "") == (r.Cause.Request == ""):
		return fmt.Errorf("the record's cause must be one alert or one request")
	case r.After != nil && (r.After.ID == "" || r.After.Step.Index < 0 || r.After.Step.Attempt < 1):
		return fmt.Errorf("the record continues a repair without id or step")
	case r.Intent != nil && clip(r.Intent.Provider, maxProviderName) != r.Intent.Provider:
		return fmt.Errorf("the record's provider %q is not the name of a provider", clip(r.Intent.Provider, 40))
	case r.Intent != nil && r.Intent.SpentSeconds < 0:
		return fmt.Errorf("the record's intent has spent %d seconds, which is impossible", r.Intent.SpentSeconds)
	case r.Unreached < 0 || r.Alone < 0 || r.Alone > r.Unreached:
		return fmt.Errorf("the record's calls that could not be made are %d, %d of them because of this machine, which is impossible", r.Unreached, r.Alone)
	case r.Step.Index < 0 || r.Step.Attempt < 1:
		return fmt.Errorf("the record's step %d, attempt %d, is impossible", r.Step.Index, r.Step.Attempt)
	case r.Phase.InFlight() && (r.Intent == nil || r.Intent.ID == "" || r.Intent.At.IsZero()):
		return fmt.Errorf("the record is %s but has no intent", r.Phase)
	case r.Since.IsZero() || (r.Phase != PhaseExhausted && r.Deadline.IsZero()):
		return fmt.Errorf("the record has no since or no deadline")
	}
	of, ok := g.Of(r.Step.Name)
	if !ok {
		return fmt.Errorf("the record's step %q is not a remediation", clip(r.Step.Name, 40))
	}
	if kind := r.kind(of); r.Target != "" && (r.Pod != nil || kind.one() || kind == KindSidecar || kind == KindAPIServer) {
		return fmt.Errorf("the record's target %q is of no kind that has one", clip(r.Target, 40))
	}
	if err := r.validateMoves(of); err != nil {
		return err
	}
	return r.validatePod()
}

// OutOfServiceTaint is Kubernetes' mark for a machine that is off for good: its pods are deleted and its volumes detached
// without waiting for its kubelet. On a machine that still runs it loses data.
const OutOfServiceTaint = "node.kubernetes.io/out-of-service"

// Passed is a step of the plan that this repair does not take, and why.
type Passed struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	Why   string `json:"why"`
}

// After is the repair that a record goes on from, since its alert came back: its last attempt, and all that were issued.
type After struct {
	ID    string   `json:"id"`
	Step  StepRef  `json:"step"`
	Steps Attempts `json:"steps"`
}

// Drained says that a step of the repair emptied the node, or began to.
func (r *Record) Drained() bool {
	return slices.ContainsFunc(r.Done, func(done Attempt) bool { return done.Name == drain.Name })
}

// PassedWhy bounds what a record keeps of the reason of each step that was passed over.
const PassedWhy = 160

// Instant is a time as a record holds it.
func Instant(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
