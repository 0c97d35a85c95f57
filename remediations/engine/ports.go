package engine

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alerts"
	"drydock.dev/drydock/remediations/signs"
)

// ErrConflict: the object changed since it was read, and nothing was written. Decide again.
var ErrConflict = errors.New("the object was changed by another writer in the meantime")

// ErrUnwritten: the API server refused the write, and certainly nothing was written.
var ErrUnwritten = errors.New("the API server refused the write")

// ErrNotFound: the object does not exist.
var ErrNotFound = errors.New("the object does not exist")

// Fleet reads the cluster's Nodes and their leases.
type Fleet interface {
	// Nodes returns all Nodes from the cache. They are shared: read only.
	Nodes(ctx context.Context) ([]*corev1.Node, error)
	// Node reads one Node from the API server itself. ErrNotFound: the Node is gone.
	Node(ctx context.Context, name string) (*corev1.Node, error)
	// Lease reads a node's heartbeat from the API server. ErrNotFound: the node has none.
	Lease(ctx context.Context, node string) (renewedAt time.Time, duration time.Duration, err error)
	// Leases reads the leases of these nodes concurrently. A lease that does not exist is missing
	// in the result. An error means that some lease could not be read.
	Leases(ctx context.Context, nodes []string) (map[string]signs.Lease, error)
	// Heartbeats reads all nodes' leases, by node.
	Heartbeats(ctx context.Context) (map[string]signs.Lease, error)
}

// Changing is a Fleet that knows which of its Nodes changed, so that a pass need not read all of
// them.
type Changing interface {
	// Changed returns the Nodes that appeared or changed since the last call, and the names of the
	// Nodes that are gone. The caller owns the list. False: the changes are unknown; call Nodes.
	Changed(ctx context.Context) (nodes []*corev1.Node, gone []string, ok bool)
}

// Rewinding is a Fleet that notes when its cache went back to an older state, also while this
// replica does not lead.
type Rewinding interface {
	// WentBack returns what went back last, and when. A zero time: nothing went back.
	WentBack() (what string, at time.Time)
}

// NodeChange is one write to a Node. It is applied completely or not at all. A nil value removes
// the key.
type NodeChange struct {
	Annotations, Labels map[string]*string
	Unschedulable       *bool
	// OutOfService sets the taint which declares that the machine is off for good. The taint's time
	// marks it as Drydock's own. InService removes the taint with that time.
	OutOfService, InService *time.Time
}

// Journal writes records and alerts on Nodes.
type Journal interface {
	// Write applies the change to the Node as it was read. ErrConflict: the Node has changed since.
	// ErrNotFound: the Node is gone. ErrUnwritten: the write was refused. After any other error the
	// change may be written or not: read before deciding again.
	Write(ctx context.Context, n *corev1.Node, c NodeChange) (*corev1.Node, error)
	// OwnsCordon reports, from managedFields, whether the cordon is Drydock's own. It makes one
	// live read.
	OwnsCordon(ctx context.Context, node string) (bool, error)
	// OwnsAnnotations returns, from managedFields, which of the annotations are Drydock's alone. It
	// makes one live read.
	OwnsAnnotations(ctx context.Context, node string, keys []string) (owned []string, err error)
	// SetBy returns, from managedFields, the field manager that owns an annotation of the Node, and
	// when that manager last changed the Node. An empty manager: managedFields name no manager. It
	// makes one live read.
	SetBy(ctx context.Context, node, annotation string) (manager string, at time.Time, err error)
}

// Conditions shows in a Node's conditions what Drydock does according to the Node's record.
type Conditions interface {
	// Show updates the conditions of the Node as it was read to match its record, and returns the
	// Node after that. After an error the conditions may be set or not; the implementation tries
	// again by itself.
	Show(ctx context.Context, n *corev1.Node) (*corev1.Node, error)
}

// LedgerStore stores the ledger.
type LedgerStore interface {
	// Load returns the data and the version to pass to Save. ErrNotFound: there is no ledger.
	Load(ctx context.Context) (data map[string]string, version string, err error)
	// Save replaces the data if the ledger still has that version. An empty version creates the
	// ledger. ErrConflict: another writer saved or created it in the meantime. ErrNotFound: it was
	// deleted. After any other error it may be saved.
	Save(ctx context.Context, data map[string]string, version string) (newVersion string, err error)
}

// AlertSource queries the Alertmanagers.
type AlertSource interface {
	// Look queries every replica now. The error of a replica is in its own Err; Look itself does
	// not fail.
	Look(ctx context.Context) []alerts.Replica
}

// Silencer silences alerts about a node under repair.
type Silencer interface {
	// Silence silences the alerts that have all of the labels, until the given time, and returns
	// the silence's ID. After an error the silence may exist or not.
	Silence(ctx context.Context, labels map[string]string, until time.Time, comment string) (id string, err error)
	// Expire ends the silence before its time. A silence that is unknown or has ended is not an
	// error.
	Expire(ctx context.Context, id string) error
}

// Machine is the target of an actuator's call, with the step's parameters.
type Machine struct {
	Node, UID, ProviderID string
	// SystemUUID is the UUID that the machine's firmware shows, as reported by its kubelet. It is
	// only as reliable as the Node.
	SystemUUID string
	// BootID is the boot ID that the Node shows before the call.
	BootID string
	// Attempt is the intent's ID.
	Attempt string
	// Policy is the policy of the step, Alert the alert that began the repair, and Deadline the
	// time when the attempt counts as failed. All three are empty in a question before the intent.
	// Alert is also nil if a person requested the repair, or if the alert is no longer on the Node.
	Policy   string
	Alert    *remediations.Alert
	Deadline time.Time
	// Soft: the machine's operating system is asked to restart, and its power is not cut.
	Soft bool
	// SwitchedOff: Drydock itself has switched the machine off, so a step that starts it need not
	// suppose that a person did.
	SwitchedOff bool
	// Before is what the provider returned for the record before the intent. Empty: it was not
	// asked, or returned nothing.
	Before remediations.Before
	// Unit is the unit that a restart-unit step restarts, DaemonSet the one that a rollout-restart
	// step restarts.
	Unit, DaemonSet string
	// Template is the template of the request to an external remediator.
	Template remediations.Template
	// GivesUpPods: Drydock has drained the Node, and its policy continues with the pods that it
	// could not evict. A provider that drains by itself must not wait for these pods.
	GivesUpPods bool
	// WithoutController is how a drain treats pods that have no controller.
	WithoutController remediations.WithoutController
}

// ErrAccount: the provider refuses the account, or the account is exhausted. No call for any
// machine will succeed until a person acts. The engine believes this and stops the policy once
// calls for two machines were refused with it.
var ErrAccount = errors.New("the provider refuses the account")

// ErrLater: the call was refused, certainly nothing was done, and the same call may succeed later.
// The attempt is given back.
var ErrLater = errors.New("the same call may succeed later")

// ErrUnable: the machine can never do what this attempt requires. So the attempt is spent although
// no call was made, and the plan continues.
var ErrUnable = errors.New("the machine cannot do this")

// ErrPassing: the call was refused before anything was done, because data that it needs could not
// be read just now. The same attempt may succeed in a moment.
var ErrPassing = errors.New("it could not be read just now")

// ActAgain is how long the engine waits before it asks again after an ErrPassing. A provider that
// needs a longer pause must not return ErrPassing.
const ActAgain = time.Second

// Actuator carries out one remediation that must happen at most once for each attempt.
type Actuator interface {
	// Act calls the provider. Act calls mayStill at the last moment before the call that changes
	// something, and does not make that call if mayStill returns an error. The outcome is never
	// empty; the error is why the call was not accepted. The error is ErrAccount if it concerns
	// more than this machine, and ErrPassing if a read failed that may succeed in a moment.
	//
	// After an ErrPassing without mayStill, Act is called again within the same attempt. An Act
	// that was refused without calling mayStill sent nothing: its attempt is given back, unless the
	// error is ErrUnable. After mayStill, only ErrPassing, ErrLater and ErrAccount give the attempt
	// back.
	//
	// An error with a method Survey reports with that method which machines it concerns. An error
	// without it does not count for onUnreachable: continue, because it may concern all machines. An
	// error with a method Wait returns with that method how long the next call must wait.
	Act(ctx context.Context, m Machine, mayStill func() error) (remediations.CallOutcome, error)
}

// Surveyor is an Actuator that can be asked about a machine before anything is decided.
type Surveyor interface {
	// Survey changes nothing. The answer's Trouble is why a call could only be refused.
	Survey(ctx context.Context, m Machine) remediations.Survey
}

// Completer is an Actuator whose call leaves work for later: it switched the machine off, and the
// machine must be switched on again.
type Completer interface {
	// Complete does the work that is due now, and reports whether nothing is left. The engine calls
	// it again and again after an attempt that was made or may have been made, also after a crash,
	// so each change must be safe to repeat. Complete calls mayStill right before each change.
	Complete(ctx context.Context, m Machine, mayStill func() error) (done bool, err error)
}

// Replacer is an Actuator that can report on the replacement of a machine.
type Replacer interface {
	// Replaced returns the progress of the replacement. An error proves nothing.
	Replaced(ctx context.Context, b remediations.Before) (remediations.Replacement, error)
}

// PowerProver is an Actuator that switches a machine off, and can report whether it is off.
type PowerProver interface {
	// PoweredOff returns what the proof lacks that the machine is off now; empty: nothing. An error
	// proves nothing.
	PoweredOff(ctx context.Context, b remediations.Before) (missing string, err error)
}

// PodProver is an Actuator that can report whether the pods that it recreated exist. It reports
// nothing about machines.
type PodProver interface {
	// Proven returns what the proof lacks. An error proves nothing.
	Proven(ctx context.Context, b remediations.Before) (remediations.PodProof, error)
}

// Worker carries out one long-running remediation that may be repeated freely.
type Worker interface {
	// Work returns when the work is done or impossible, or soon after ctx ends. After that it
	// changes nothing more. It calls mayStill before it begins. It reports its progress, and what
	// blocks the work, through its last argument; an empty blocked: nothing does.
	Work(ctx context.Context, m Machine, mayStill func() error, tell func(note, blocked string)) error
}

// ErrTaken: another repair system has reserved the node. The error that wraps ErrTaken names that
// system.
var ErrTaken = errors.New("another repair of this node is under way")

// Reserver agrees with other repair systems which system repairs a node.
type Reserver interface {
	// Free returns nil if the node could be taken for a step. by is the provider that carries out
	// the step, and empty for a worker's step. Free changes nothing.
	Free(ctx context.Context, m Machine, by string) error
	// Take takes the node for Drydock, or keeps it. The engine does not release it, because Drydock
	// may be killed.
	Take(ctx context.Context, m Machine, by string) error
}

// Recorder sends Events. regarding is a Node's name. Empty: the Event is about Drydock itself, by
// its ledger.
type Recorder interface {
	Event(regarding string, e Event)
}

// Event is one Kubernetes Event. Kubernetes folds Events with one reason and action on one object
// within minutes into a series that keeps the first note. So Action must differ where notes must
// not be lost.
type Event struct {
	Warning              bool
	Reason, Action, Note string
	// About is the object of the Event if it is neither a Node nor Drydock itself.
	About *remediations.Object
	// Of is the repair that the Event is about, for the log.
	Of Trail
}
