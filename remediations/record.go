package remediations

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// RecordVersion is the version of the format of Drydock's annotations and of the ledger.
const RecordVersion = 1

const idLength = 6

// A policy's name, or "remediation/" and the name of a requested remediation.
const maxPolicyName = 512

// MaxRecordBytes is the greatest length of a record's JSON text. Drydock never writes a longer one.
const MaxRecordBytes = 8 << 10

// Phase is the state of a repair.
type Phase string

const (
	// PhasePending means that no step is under way: the repair is held, or between two attempts. It
	// does not count against the limits, and the webhook allows all changes of the node.
	PhasePending Phase = "Pending"
	// PhaseActing means that the intent is written, and that the call is under way or comes next.
	PhaseActing Phase = "Acting"
	// PhaseVerifying means that the call has ended and Drydock waits for the proof of the cure.
	PhaseVerifying Phase = "Verifying"
	// PhaseExhausted means that the plan has no more steps and that a person must check the node.
	PhaseExhausted Phase = "Exhausted"
)

// InFlight reports whether a step of the repair is under way or waits for its proof.
func (p Phase) InFlight() bool { return p == PhaseActing || p == PhaseVerifying }

// CallOutcome is the outcome of a call to a provider, as far as it is known. Empty means that
// Drydock does not know whether it sent the call.
type CallOutcome string

const (
	// CallAccepted means that the provider accepted the call.
	CallAccepted CallOutcome = "accepted"
	// CallRefused means that the provider certainly did nothing.
	CallRefused CallOutcome = "refused"
	// CallUnknown means that the provider may have carried out the call.
	CallUnknown CallOutcome = "unknown"
)

// Record is a repair under way, as an annotation of the Node stores it (see KeyOf). Times are RFC
// 3339, in UTC.
type Record struct {
	V      int    `json:"v"`
	ID     string `json:"id"`
	Policy string `json:"policy"`
	Cause  Cause  `json:"cause"`
	// The digest of what a person must approve: see Policy.Approved. Empty if the policy needs no
	// approval.
	Plan string `json:"plan,omitempty"`
	// Empty for nodes, sidecars (Pod) and locations (Location).
	Target   string `json:"target,omitempty"`
	Pod      *Pod   `json:"pod,omitempty"`
	Location string `json:"location,omitempty"`
	// The changes of the location's leadership that were requested, oldest first.
	Moves []Move `json:"moves,omitempty"`
	// When the mesh leadership began to return to the earlier leader. Nil if it has not.
	Back *time.Time `json:"back,omitempty"`
	// Fingerprints of other alerts of the node. While this repair runs, they cause no repair; one
	// that still fires afterwards causes its own.
	Also []string `json:"also,omitempty"`
	// The earlier repair that this one continues, because its alert returned.
	After *After `json:"after,omitempty"`
	Phase Phase  `json:"phase"`
	// In the phase Pending it is the next attempt.
	Step StepRef  `json:"step"`
	Done Attempts `json:"done,omitempty"`
	// Since is when the present phase began. Deadline is the latest end of that phase.
	Began    time.Time `json:"began"`
	Since    time.Time `json:"since"`
	Deadline time.Time `json:"deadline"`
	// The last attempt that was issued.
	Intent *Intent `json:"intent,omitempty"`
	Hold   *Hold   `json:"hold,omitempty"`
	// The steps of the plan that were left out.
	Passed []Passed `json:"passed,omitempty"`
	// The last lines of the host's log from before a step on the host.
	Evidence string `json:"evidence,omitempty"`
	// The progress of a step under way, and what blocks the step.
	Note string `json:"note,omitempty"`
	// How many calls in a row for the next attempt did not reach the provider.
	Unreached int `json:"unreached,omitempty"`
	// The latest failed calls that failed because of this machine only. Unreached counts them, too.
	// A call that fails because of the whole provider sets this to zero.
	Alone int `json:"alone,omitempty"`
	// The changes to the Node that must be undone.
	Undo    []Undo `json:"undo,omitempty"`
	Silence string `json:"silence,omitempty"`
	// When the node of an exhausted repair became well. Zero means that it is not well, or that
	// this is not proven yet.
	WellSince time.Time `json:"wellSince,omitzero"`
}

// Cause is what caused the repair: an alert (its fingerprint) or a person's request.
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

// StepRef names one attempt of one step of the plan. Index counts from 0, Attempt from 1.
type StepRef struct {
	Index   int    `json:"index"`
	Name    string `json:"name"`
	Attempt int    `json:"attempt"`
}

func (s StepRef) String() string { return fmt.Sprintf("%s:%d", s.Name, s.Attempt) }

// Intent is one attempt of a step, recorded before the call is made. After a restart, an intent
// without an outcome counts as a call that was made.
type Intent struct {
	// The repair's id, the step's index and the attempt's number. Each call has its own id.
	ID string    `json:"id"`
	At time.Time `json:"at"`
	// The machine before the call. The proof compares these with the facts afterwards. For a
	// sidecar, UID is the pod's.
	BootID     string `json:"bootID,omitempty"`
	UID        string `json:"uid,omitempty"`
	ProviderID string `json:"providerID,omitempty"`
	// How many GPUs the machine had before the fault. Zero means unknown.
	GPUs int `json:"gpus,omitempty"`
	// The start of the sidecar's container before the call. Zero means unknown. If the container
	// starts again, the sidecar needs a new approval, even in the same pod.
	Started time.Time `json:"started,omitzero"`
	// The task that is sent to the sidecar. Each attempt has a new one, because a sidecar ignores
	// an id that it knows.
	Task string `json:"task,omitempty"`
	// The node that becomes the leader of the location.
	Successor string      `json:"successor,omitempty"`
	Outcome   CallOutcome `json:"outcome,omitempty"`
	// The provider's message, if the outcome is not accepted.
	Why string `json:"why,omitempty"`
	// How long earlier, interrupted runs of a repeatable step took.
	SpentSeconds int `json:"spentSeconds,omitempty"`
	// The provider that was called, if several are configured for the step.
	Provider string `json:"provider,omitempty"`
	// Facts from before the step that the provider needs for its proof.
	Before Before `json:"before,omitempty"`
	// The node's zone, pool and role when it was drained. The repair counts against their limits
	// until it ends, even if the node's labels change. Empty if nothing was drained.
	Zone         string `json:"zone,omitempty"`
	Pool         string `json:"pool,omitempty"`
	ControlPlane bool   `json:"controlPlane,omitempty"`
}

// Hold says why a repair is held.
type Hold struct {
	Reason  Reason     `json:"reason"`
	Message string     `json:"message"`
	Since   time.Time  `json:"since"`
	Until   *time.Time `json:"until,omitempty"`
	// The provider has given no answer about this machine since the time Since, and was never known
	// to be unreachable for all machines. Only then may the plan continue with another step.
	Alone bool `json:"alone,omitempty"`
}

// Concern is what a fleet-wide hold is about: one policy, or the nodes of one zone or pool. If all
// fields are empty, it is about every node.
type Concern struct {
	Policy string `json:"policy,omitempty"`
	Zone   string `json:"zone,omitempty"`
	Pool   string `json:"pool,omitempty"`
}

// Undo is one change that Drydock made to a Node: {"kind":"cordon"}, {"kind":"taint","key":"…"} or
// {"kind":"annotation","key":"…"}.
type Undo struct {
	Kind string    `json:"kind"`
	Key  string    `json:"key,omitempty"`
	At   time.Time `json:"at"`
	// The last boot ID of a machine that Drydock switched off, for its out-of-service taint: see
	// Due.
	BootID string `json:"bootID,omitempty"`
}

// The values of Undo.Kind. UndoCordon resets spec.unschedulable, UndoTaint and UndoAnnotation
// remove the taint or annotation in Key, and UndoLeader takes the mesh leadership back from the
// node in Key.
const (
	UndoCordon = "cordon"
	UndoTaint  = "taint"

	UndoAnnotation = "annotation"

	UndoLeader = "leader"
)

// Set reports whether t is the taint that Drydock recorded, by key and time. managedFields cannot
// show who set a taint, because all taints are one field there. A taint that kubectl set has no
// time. The API server stores whole seconds.
func (u Undo) Set(t corev1.Taint) bool {
	return u.Kind == UndoTaint && t.Key == u.Key && t.TimeAdded != nil && t.TimeAdded.Unix() == u.At.Unix()
}

// Clone returns a deep copy of the record.
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

// DecodeRecord decodes and checks a record. It returns an error for a text that this version would
// not have written. The node's repairs are then held for the reason RecordMalformed, and the text
// stays until a person resets the node.
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

// DecodeRecordOf decodes the record under this annotation key. It also returns an error if the
// record is about another target than the key.
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
		return nil, fmt.Errorf("the record and its annotation key name different targets")
	}
	return r, nil
}

// DecodeRecord is Registry.DecodeRecord for an installation with only the shipped remediations.
func DecodeRecord(value string) (*Record, error) { return Registry(nil).DecodeRecord(value) }

// DecodeRecordOf is Registry.DecodeRecordOf for an installation with only the shipped remediations.
func DecodeRecordOf(key, value string) (*Record, error) {
	return Registry(nil).DecodeRecordOf(key, value)
}

// Validate returns an error if Drydock cannot have written the record.
func (r *Record) Validate(g Registry) error {
	switch r.Phase {
	case PhasePending, PhaseActing, PhaseVerifying, PhaseExhausted:
	default:
		return fmt.Errorf("the record's phase %q is unknown", clip(string(r.Phase), 40))
	}
	switch {
	case r.ID == "" || len(r.ID) > idLength || !ofIDLetters(r.ID):
		// The id must have this form, because the webhook's denial prints it in a command that people
		// paste.
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
		return fmt.Errorf("the record counts %d failed calls, and %d of them because of this machine, which is impossible", r.Unreached, r.Alone)
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
		return fmt.Errorf("the record has the target %q, but its kind of target needs none", clip(r.Target, 40))
	}
	if err := r.validateMoves(of); err != nil {
		return err
	}
	return r.validatePod()
}

// OutOfServiceTaint is Kubernetes' taint for a machine that is off for good. Kubernetes then
// deletes the node's pods and detaches its volumes without waiting for the kubelet. If the machine
// still runs, this can destroy data.
const OutOfServiceTaint = "node.kubernetes.io/out-of-service"

// Passed is a step of the plan that was left out, and why.
type Passed struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	Why   string `json:"why"`
}

// After is the earlier repair that a record continues, because the alert returned. Step is that
// repair's last attempt, and Steps are all of its attempts.
type After struct {
	ID    string   `json:"id"`
	Step  StepRef  `json:"step"`
	Steps Attempts `json:"steps"`
}

// Drained reports whether the repair has drained the node, or has begun to.
func (r *Record) Drained() bool {
	return slices.ContainsFunc(r.Done, func(done Attempt) bool { return done.Name == drain.Name })
}

// PassedWhy is the greatest length of Passed.Why in bytes.
const PassedWhy = 160

// Instant returns the time as records store it: in UTC, to the second.
func Instant(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
