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

// ErrConflict means that the object has changed since it was read, and that nothing was written.
var ErrConflict = errors.New("the object was changed by another writer in the meantime")

// ErrUnwritten means that the API server refused the write. Certainly nothing was written.
var ErrUnwritten = errors.New("the API server refused the write")

// ErrNotFound means that the object does not exist.
var ErrNotFound = errors.New("the object does not exist")

// Fleet reads the cluster's Nodes and their leases.
type Fleet interface {
	// Nodes returns all Nodes from the cache. They are shared: the caller must not change them.
	Nodes(ctx context.Context) ([]*corev1.Node, error)
	// Node reads one Node from the API server. It returns ErrNotFound if the Node is gone.
	Node(ctx context.Context, name string) (*corev1.Node, error)
	// Lease reads a node's lease from the API server. It returns ErrNotFound if there is none.
	Lease(ctx context.Context, node string) (renewedAt time.Time, duration time.Duration, err error)
	// Leases reads the leases of these nodes. A lease that does not exist is missing in the result.
	// An error means that at least one could not be read.
	Leases(ctx context.Context, nodes []string) (map[string]signs.Lease, error)
	// Heartbeats reads the leases of all nodes, by node.
	Heartbeats(ctx context.Context) (map[string]signs.Lease, error)
}

// Changing is a Fleet that knows which of its Nodes changed.
type Changing interface {
	// Changed returns what changed since the last call, and the names of deleted Nodes. The caller
	// may change the list. If ok is false, the caller must call Nodes.
	Changed(ctx context.Context) (nodes []*corev1.Node, gone []string, ok bool)
}

// Rewinding is a Fleet that notices an older state than before, for example after a restore of
// etcd. It notices this also while this replica is not the leader.
type Rewinding interface {
	// WentBack returns which object went back last, and when. A zero time means none.
	WentBack() (what string, at time.Time)
}

// NodeChange is one write to a Node, applied completely or not at all. A nil value removes the key.
type NodeChange struct {
	Annotations, Labels map[string]*string
	Unschedulable       *bool
	// OutOfService adds the taint node.kubernetes.io/out-of-service: the machine is off for good.
	// The time becomes the taint's timeAdded, which shows Drydock that the taint is its own.
	// InService removes the taint with that timeAdded.
	OutOfService, InService *time.Time
}

// NodeWriter writes records and alerts on Nodes.
type NodeWriter interface {
	// Write changes the Node if it is still as it was read. It returns ErrConflict if the Node has
	// changed, ErrNotFound if it is gone, and ErrUnwritten if the write was refused. After any
	// other error the caller must read the Node before it decides again.
	Write(ctx context.Context, n *corev1.Node, c NodeChange) (*corev1.Node, error)
	// OwnsCordon reports, from managedFields in the API server, whether Drydock itself has cordoned
	// the node.
	OwnsCordon(ctx context.Context, node string) (bool, error)
	// OwnsAnnotations returns, from managedFields in the API server, which of the annotations only
	// Drydock owns.
	OwnsAnnotations(ctx context.Context, node string, keys []string) (owned []string, err error)
	// SetBy returns, from managedFields in the API server, who owns an annotation, and when that
	// manager last changed the Node. The manager is empty if it is unknown.
	SetBy(ctx context.Context, node, annotation string) (manager string, at time.Time, err error)
}

// Conditions shows Drydock's repair in a Node's conditions.
type Conditions interface {
	// Show updates the conditions and returns the updated Node. After an error it is unknown
	// whether they are set. The implementation then tries again by itself.
	Show(ctx context.Context, n *corev1.Node) (*corev1.Node, error)
}

// LedgerStore stores the ledger.
type LedgerStore interface {
	// Load returns the ledger's data, and the version that Save needs. It returns ErrNotFound if
	// there is no ledger.
	Load(ctx context.Context) (data map[string]string, version string, err error)
	// Save replaces the data if the stored version is still the same. With an empty version it
	// creates the ledger. It returns ErrConflict if another writer was first, and ErrNotFound if
	// the ledger was deleted. After any other error it is unknown whether the data was saved.
	Save(ctx context.Context, data map[string]string, version string) (newVersion string, err error)
}

// AlertSource queries the Alertmanagers.
type AlertSource interface {
	// Look queries every Alertmanager now. Each answer has its own error, Err.
	Look(ctx context.Context) []alerts.Replica
}

// Silencer silences alerts about a node under repair.
type Silencer interface {
	// Silence silences the alerts that have all of the labels. After an error it is unknown whether
	// the silence exists.
	Silence(ctx context.Context, labels map[string]string, until time.Time, comment string) (id string, err error)
	// Expire ends the silence. It returns no error if the silence is unknown or has already ended.
	Expire(ctx context.Context, id string) error
}

// Machine is the machine of a call, with the step's parameters.
type Machine struct {
	Node, UID, ProviderID string
	// SystemUUID is reported by the kubelet. A node under an attacker's control can report a false
	// one.
	SystemUUID string
	// BootID is what the Node shows before the call.
	BootID string
	// Attempt is the ID of one attempt of the step.
	Attempt string
	// All three are empty before an attempt. Alert is also nil if a person requested the repair, or
	// if the alert is no longer on the Node. At Deadline the attempt counts as failed.
	Policy   string
	Alert    *remediations.Alert
	Deadline time.Time
	// Soft asks the operating system to restart, and does not cut the power.
	Soft bool
	// SwitchedOff means that Drydock itself has switched the machine off. If it is false and the
	// machine is off, a person may have done that, and a step must not start it.
	SwitchedOff bool
	// Before has what Survey returned before the step, for the proof after it. It may be empty.
	Before remediations.Before
	// Unit is for restart-unit, DaemonSet for rollout-restart.
	Unit, DaemonSet string
	Template        remediations.Template
	// GivesUpPods means that the policy continues although pods may remain after the drain. A
	// provider that drains by itself must not wait for them.
	GivesUpPods bool
	// WithoutController is how a drain treats pods that have no controller.
	WithoutController remediations.WithoutController
}

// ErrAccount means that the provider refuses the account, so that no call succeeds until a person
// acts. The engine stops the policy only after calls for two machines were refused with this error.
var ErrAccount = errors.New("the provider refuses the account")

// ErrLater means that certainly nothing was done, and that the same call may succeed later. The
// attempt does not count.
var ErrLater = errors.New("the same call may succeed later")

// ErrUnable means that the machine can never do this. The attempt counts although no call was made,
// and the plan continues with its next step.
var ErrUnable = errors.New("the machine cannot do this")

// ErrPassing means that nothing was done, because a read failed that may succeed in a moment.
var ErrPassing = errors.New("it could not be read just now")

// ActAgain is how long the engine waits after ErrPassing. A provider that needs a longer pause must
// not return ErrPassing.
const ActAgain = time.Second

// Actuator carries out one remediation that must happen at most once for each attempt.
type Actuator interface {
	// Act calls the provider. It calls mayStill at the last moment before the request that changes
	// something. If mayStill returns an error, Act must not send that request. The outcome is never
	// empty. The error is why the call was not accepted: ErrAccount if the reason concerns more
	// than this machine, ErrPassing if a read failed that may succeed in a moment.
	//
	// If Act returns ErrPassing before it has called mayStill, the engine calls Act again within
	// the same attempt. If Act refuses without having called mayStill, it has sent nothing. The
	// attempt is then given back, unless the error is ErrUnable. Once Act has called mayStill, only
	// ErrPassing, ErrLater and ErrAccount give the attempt back.
	//
	// An error may have a method Survey, which reports which machines the error concerns. An error
	// without this method may concern all machines. Such an error does not let a policy with
	// `onUnreachable: continue` skip the step. An error may also have a method Wait, which returns
	// how long the next call must wait.
	Act(ctx context.Context, m Machine, mayStill func() error) (remediations.CallOutcome, error)
}

// Surveyor is an Actuator that can answer questions about a machine before a step is decided.
type Surveyor interface {
	// Survey reports what would prevent the step on this machine, and changes nothing. If Act would
	// refuse the call now, the answer's Trouble is the reason.
	Survey(ctx context.Context, m Machine) remediations.Survey
}

// Completer is an Actuator that switches the machine off, and must switch it on again.
type Completer interface {
	// Complete does the part that is due now, and reports whether nothing is left. It is called
	// again and again, also after a crash, and for calls that may not have been made. So each
	// change must be safe to repeat. It calls mayStill right before each change.
	Complete(ctx context.Context, m Machine, mayStill func() error) (done bool, err error)
}

// Replacer is an Actuator that can report on the replacement of a machine.
type Replacer interface {
	// Replaced returns the progress of the replacement. If it returns an error, nothing is known.
	Replaced(ctx context.Context, b remediations.Before) (remediations.Replacement, error)
}

// PowerProver is an Actuator that can report whether a machine is off.
type PowerProver interface {
	// PoweredOff returns what is still missing to prove that the machine is off now, or an empty
	// string if that is proven. If it returns an error, nothing is known.
	PoweredOff(ctx context.Context, b remediations.Before) (missing string, err error)
}

// PodProver is an Actuator that can report whether the pods that it recreates exist.
type PodProver interface {
	// Proven returns what is still missing to prove that the pods exist. If it returns an error,
	// nothing is known.
	Proven(ctx context.Context, b remediations.Before) (remediations.PodProof, error)
}

// Worker carries out a long-running remediation that may be repeated any number of times.
type Worker interface {
	// Work returns when the work is done or impossible, or soon after ctx ends. After that it
	// changes nothing more. It calls mayStill before it begins. An empty blocked means that nothing
	// blocks the work.
	Work(ctx context.Context, m Machine, mayStill func() error, tell func(note, blocked string)) error
}

// ErrTaken means that another repair system has reserved the node. The error around it names that
// system.
var ErrTaken = errors.New("another repair of this node is under way")

// Reserver agrees with other repair systems which system repairs a node.
type Reserver interface {
	// Free returns nil if Drydock could reserve the node for a step, and changes nothing. by is the
	// provider that carries out the step, and is empty for a worker's step.
	Free(ctx context.Context, m Machine, by string) error
	// Take reserves the node, or renews the reservation. It must end by itself: the engine never
	// releases it, because Drydock may be killed before it could.
	Take(ctx context.Context, m Machine, by string) error
}

// Recorder sends Events. regarding is the Node's name. If it is empty, the Event is about Drydock
// itself, and is attached to Drydock's ledger.
type Recorder interface {
	Event(regarding string, e Event)
}

// Event is one Kubernetes Event. Kubernetes combines Events about one object with the same reason
// and action within minutes, and keeps only the first note. So Action must differ if no note may be
// lost.
type Event struct {
	Warning              bool
	Reason, Action, Note string
	// About is the object of the Event if it is neither a Node nor Drydock itself.
	About *remediations.Object
	Of    Trail
}
