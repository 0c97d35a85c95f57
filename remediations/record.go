package remediations

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// RecordVersion is the version of everything that Drydock writes on a Node and in the ledger.
const RecordVersion = 1

// idLength is the length of a repair's id.
const idLength = 6

// maxPolicyName bounds the policy of a record: a policy's name, or remediation/ and the requested
// remediation.
const maxPolicyName = 512

// MaxRecordBytes bounds one record. Drydock never writes a longer one.
const MaxRecordBytes = 8 << 10

// Phase is the state of a repair.
type Phase string

const (
	// PhasePending: an alert or a request matched. A guard holds the repair, or it is between two
	// attempts. It takes no slot, and the webhook denies nothing.
	PhasePending Phase = "Pending"
	// PhaseActing: the intent is written. The side effect was issued, or comes next.
	PhaseActing Phase = "Acting"
	// PhaseVerifying: waiting for proof.
	PhaseVerifying Phase = "Verifying"
	// PhaseExhausted: the plan has no more steps. A person must look.
	PhaseExhausted Phase = "Exhausted"
)

// InFlight reports whether a repair in this phase occupies its node.
func (p Phase) InFlight() bool { return p == PhaseActing || p == PhaseVerifying }

// CallOutcome is what is known of a call to a provider. Empty: Drydock does not know that the call
// was sent.
type CallOutcome string

const (
	CallAccepted CallOutcome = "accepted"
	// CallRefused: the provider certainly did nothing.
	CallRefused CallOutcome = "refused"
	// CallUnknown: the provider may have done it.
	CallUnknown CallOutcome = "unknown"
)

// Record is a repair under way on a Node. Its key is RepairPrefix and the target. Times are RFC
// 3339, UTC.
type Record struct {
	V      int    `json:"v"`
	ID     string `json:"id"`
	Policy string `json:"policy"`
	Cause  Cause  `json:"cause"`
	// Plan is the digest of the plan and the machine that a person must approve; absent: the policy
	// needs no approval.
	Plan string `json:"plan,omitempty"`
	// Target names the target if its kind has no field of its own here. Absent: the target is the
	// node itself, or its kind has a field.
	Target string `json:"target,omitempty"`
	// Pod is the pod whose sidecar is repaired.
	Pod *Pod `json:"pod,omitempty"`
	// Location is the location whose leader is repaired. Moves are the changes of leadership that
	// were issued, oldest first. Back is when Drydock began to undo them. Absent: the repair is not
	// a leader's, or nothing is being undone.
	Location string     `json:"location,omitempty"`
	Moves    []Move     `json:"moves,omitempty"`
	Back     *time.Time `json:"back,omitempty"`
	// Also are further alerts on the node that fired when the record was last written. They get no
	// repair while this one runs. An alert that still fires afterwards begins a repair of its own.
	Also []string `json:"also,omitempty"`
	// After is the repair that this one continues, because its alert returned; nil: none.
	After *After `json:"after,omitempty"`
	Phase Phase  `json:"phase"`
	// Step is the current step or, while Pending, the next one.
	Step StepRef `json:"step"`
	// Done are the attempts already issued, oldest first.
	Done Attempts `json:"done,omitempty"`
	// Began is when the repair was first recorded, Since when its phase began, and Deadline when
	// the phase ends.
	Began    time.Time `json:"began"`
	Since    time.Time `json:"since"`
	Deadline time.Time `json:"deadline"`
	// Intent is the last attempt that was issued.
	Intent *Intent `json:"intent,omitempty"`
	// Hold is what holds the next side effect.
	Hold *Hold `json:"hold,omitempty"`
	// Passed are the steps of the plan that were passed over. Evidence is the host's last report
	// before a step on it.
	Passed   []Passed `json:"passed,omitempty"`
	Evidence string   `json:"evidence,omitempty"`
	// Note is the progress of a step under way, and what blocks it.
	Note string `json:"note,omitempty"`
	// Unreached is how many calls in a row could not be made for the next attempt. Alone is how
	// many of the last of these calls in a row failed because of this machine. An outage of the
	// whole provider resets Alone.
	Unreached int `json:"unreached,omitempty"`
	Alone     int `json:"alone,omitempty"`
	// Undo are Drydock's changes to the Node that Drydock must undo.
	Undo []Undo `json:"undo,omitempty"`
	// Silence is the id of the silence that Drydock created for this repair.
	Silence string `json:"silence,omitempty"`
	// WellSince is since when the node of an exhausted repair has been well. Zero: it is not well,
	// or Drydock has not proven it yet.
	WellSince time.Time `json:"wellSince,omitzero"`
}

// Cause is the reason for the repair: an alert's fingerprint, or a person's request.
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

// StepRef names one attempt of one step of the plan: the step's index from 0, its name, and the
// attempt's number from 1.
type StepRef struct {
	Index   int    `json:"index"`
	Name    string `json:"name"`
	Attempt int    `json:"attempt"`
}

func (s StepRef) String() string { return fmt.Sprintf("%s:%d", s.Name, s.Attempt) }

// Intent is written before the call. Without an outcome, the call counts as issued.
type Intent struct {
	// ID has the repair's id, the step's index and the attempt's number: one id for each side
	// effect.
	ID string    `json:"id"`
	At time.Time `json:"at"`
	// BootID, UID and ProviderID are those of the machine before the call. The proof shows that
	// they changed, or did not. For a sidecar, UID is the pod's.
	BootID     string `json:"bootID,omitempty"`
	UID        string `json:"uid,omitempty"`
	ProviderID string `json:"providerID,omitempty"`
	// GPUs is how many GPUs the machine had before the fault, by its label; zero: unknown.
	GPUs int `json:"gpus,omitempty"`
	// Started is when the sidecar's container had started before the call; zero: unknown. A new
	// start closes the gate again in the same pod.
	Started time.Time `json:"started,omitzero"`
	// Task is the id of the sidecar's task. Each attempt has a new id, because a sidecar ignores an
	// id that it knows.
	Task string `json:"task,omitempty"`
	// Successor is the node that becomes the leader of the location.
	Successor string      `json:"successor,omitempty"`
	Outcome   CallOutcome `json:"outcome,omitempty"`
	// Why is the provider's message, if the outcome is not accepted.
	Why string `json:"why,omitempty"`
	// SpentSeconds is how long earlier runs of a repeatable step took before they were interrupted.
	SpentSeconds int `json:"spentSeconds,omitempty"`
	// Provider is the one of several providers that was called for the step; absent: only one
	// provider carries it out.
	Provider string `json:"provider,omitempty"`
	// Before is what the provider found before the step, if its proof needs that.
	Before Before `json:"before,omitempty"`
	// Zone, Pool and ControlPlane are the node's zone, pool and role by its labels when the repair
	// drained it. The repair counts there until it ends, even if the labels change. Absent: the
	// repair drained nothing.
	Zone         string `json:"zone,omitempty"`
	Pool         string `json:"pool,omitempty"`
	ControlPlane bool   `json:"controlPlane,omitempty"`
}

// Hold is what holds a repair.
type Hold struct {
	Reason  Reason     `json:"reason"`
	Message string     `json:"message"`
	Since   time.Time  `json:"since"`
	Until   *time.Time `json:"until,omitempty"`
	// Alone: since Since, each answer says that the provider cannot be asked about this machine,
	// and no answer says this of other machines. Absent: unknown, and no step is passed over for
	// it.
	Alone bool `json:"alone,omitempty"`
}

// Undo is one change that Drydock made to a Node: {"kind":"cordon"}, {"kind":"taint","key":"…"} or
// {"kind":"annotation","key":"…"}.
type Undo struct {
	Kind string    `json:"kind"`
	Key  string    `json:"key,omitempty"`
	At   time.Time `json:"at"`
	// BootID, of a taint, is the boot that Drydock ended by switching the machine off: see Due.
	// Absent: the change does not depend on a boot.
	BootID string `json:"bootID,omitempty"`
}

// Kinds of Undo. UndoCordon resets spec.unschedulable, UndoTaint removes the taint with the Undo's
// Key, and UndoAnnotation removes the announcement with that key. UndoLeader reverts the move to
// the node in Key.
const (
	UndoCordon = "cordon"
	UndoTaint  = "taint"

	UndoAnnotation = "annotation"

	UndoLeader = "leader"
)

// Set reports whether the taint is the one that Drydock set and recorded. Only the taint's time
// decides: managedFields cannot name the author, because all taints are one field there. Only the
// author sets a taint's time, and kubectl sets none. It compares whole seconds, because the API
// server keeps no more.
func (u Undo) Set(t corev1.Taint) bool {
	return u.Kind == UndoTaint && t.Key == u.Key && t.TimeAdded != nil && t.TimeAdded.Unix() == u.At.Unix()
}

// Clone copies a record, so that a transition never changes the original.
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

// DecodeRecord reads a record. It returns an error for anything that this version would not have
// written. The guard RecordMalformed then holds the node, and Drydock leaves the bytes unchanged
// until a person resets the node.
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

// DecodeRecordOf reads the record under the annotation's key. It returns an error if the record
// names another target than the key does.
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
		return nil, fmt.Errorf("the record names another target than its key does")
	}
	return r, nil
}

// DecodeRecord is Registry.DecodeRecord with the shipped remediations alone.
func DecodeRecord(value string) (*Record, error) { return Registry(nil).DecodeRecord(value) }

// DecodeRecordOf is Registry.DecodeRecordOf with the shipped remediations alone.
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
		// The webhook's denial prints the id in a command that people paste.
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

// OutOfServiceTaint is Kubernetes' mark for a machine that is off for good. Kubernetes then deletes
// its pods and detaches its volumes without waiting for its kubelet. On a machine that still runs,
// the taint loses data.
const OutOfServiceTaint = "node.kubernetes.io/out-of-service"

// Passed is a step of the plan that this repair passes over, and why.
type Passed struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	Why   string `json:"why"`
}

// After is the repair that a record continues, because its alert returned: its last attempt, and
// all attempts that were issued.
type After struct {
	ID    string   `json:"id"`
	Step  StepRef  `json:"step"`
	Steps Attempts `json:"steps"`
}

// Drained reports whether a step of the repair drained the node, or began to.
func (r *Record) Drained() bool {
	return slices.ContainsFunc(r.Done, func(done Attempt) bool { return done.Name == drain.Name })
}

// PassedWhy bounds the reason that a record keeps for each step that was passed over.
const PassedWhy = 160

// Instant returns a time in the form that a record holds.
func Instant(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
