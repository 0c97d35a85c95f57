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

// ErrConflict means that the object changed since it was read, and that nothing was written. The
// caller must decide again.
var ErrConflict = errors.New("the object was changed by another writer in the meantime")

// ErrUnwritten means that the API server refused the write. Certainly nothing was written.
var ErrUnwritten = errors.New("the API server refused the write")

// ErrNotFound means that the object does not exist.
var ErrNotFound = errors.New("the object does not exist")

// Fleet reads the cluster's Nodes and their leases.
type Fleet interface {
	// Nodes returns all Nodes from the cache. The caller must not change them, because they are
	// shared.
	Nodes(ctx context.Context) ([]*corev1.Node, error)
	// Node reads one Node from the API server, not from the cache. It returns ErrNotFound if the
	// Node is gone.
	Node(ctx context.Context, name string) (*corev1.Node, error)
	// Lease reads a node's heartbeat from the API server. It returns ErrNotFound if the node has no
	// lease.
	Lease(ctx context.Context, node string) (renewedAt time.Time, duration time.Duration, err error)
	// Leases reads the leases of these nodes concurrently. A lease that does not exist is missing
	// in the result. An error means that at least one lease could not be read.
	Leases(ctx context.Context, nodes []string) (map[string]signs.Lease, error)
	// Heartbeats reads the leases of all nodes. The key is the node's name.
	Heartbeats(ctx context.Context) (map[string]signs.Lease, error)
}

// Changing is a Fleet that knows which of its Nodes changed, so that a pass need not read all of
// them.
type Changing interface {
	// Changed returns the Nodes that appeared or changed since the last call, and the names of the
	// Nodes that are gone. The caller may change the list. If ok is false, the changes are unknown,
	// and the caller must call Nodes.
	Changed(ctx context.Context) (nodes []*corev1.Node, gone []string, ok bool)
}

// Rewinding is a Fleet that notices when its cache receives an older state than before, for example
// after etcd was restored from a backup. It notices this also while this replica is not the leader.
type Rewinding interface {
	// WentBack returns which object went back last, and when. A zero time means that nothing went
	// back.
	WentBack() (what string, at time.Time)
}

// NodeChange is one write to a Node. It is applied completely or not at all. A nil value in a map
// removes the key.
type NodeChange struct {
	Annotations, Labels map[string]*string
	Unschedulable       *bool
	// OutOfService adds the taint node.kubernetes.io/out-of-service, which declares that the
	// machine is off for good. The value becomes the taint's timeAdded, so that Drydock recognizes
	// its own taint. InService removes the taint with that timeAdded.
	OutOfService, InService *time.Time
}

// NodeWriter writes records and alerts on Nodes.
type NodeWriter interface {
	// Write changes the Node if it is still as it was read. It returns ErrConflict if the Node has
	// changed since, ErrNotFound if the Node is gone, and ErrUnwritten if the write was refused.
	// After any other error it is unknown whether the change was written: the caller must read the
	// Node before deciding again.
	Write(ctx context.Context, n *corev1.Node, c NodeChange) (*corev1.Node, error)
	// OwnsCordon reports, from managedFields, whether Drydock itself has cordoned the node. It
	// reads the Node from the API server.
	OwnsCordon(ctx context.Context, node string) (bool, error)
	// OwnsAnnotations returns, from managedFields, which of the annotations only Drydock owns. It
	// reads the Node from the API server.
	OwnsAnnotations(ctx context.Context, node string, keys []string) (owned []string, err error)
	// SetBy returns, from managedFields, the field manager that owns an annotation of the Node, and
	// when that manager last changed the Node. The manager is empty if managedFields do not name
	// one. It reads the Node from the API server.
	SetBy(ctx context.Context, node, annotation string) (manager string, at time.Time, err error)
}

// Conditions shows in a Node's conditions what the Node's record says.
type Conditions interface {
	// Show updates the Node's conditions to match its record, and returns the updated Node. After
	// an error it is unknown whether the conditions are set. The implementation then tries again by
	// itself.
	Show(ctx context.Context, n *corev1.Node) (*corev1.Node, error)
}

// LedgerStore stores the ledger.
type LedgerStore interface {
	// Load returns the ledger's data, and the version that Save needs. It returns ErrNotFound if
	// there is no ledger.
	Load(ctx context.Context) (data map[string]string, version string, err error)
	// Save replaces the data if the ledger still has that version. With an empty version it creates
	// the ledger. It returns ErrConflict if another writer saved or created the ledger in the
	// meantime, and ErrNotFound if the ledger was deleted. After any other error it is unknown
	// whether the data was saved.
	Save(ctx context.Context, data map[string]string, version string) (newVersion string, err error)
}

// AlertSource queries the Alertmanagers.
type AlertSource interface {
	// Look queries every replica of Alertmanager now. Each replica's error is in its own Err. So
	// Look itself does not fail.
	Look(ctx context.Context) []alerts.Replica
}

// Silencer silences alerts about a node under repair.
type Silencer interface {
	// Silence silences the alerts that have all of the labels, until the given time. It returns the
	// silence's ID. After an error it is unknown whether the silence exists.
	Silence(ctx context.Context, labels map[string]string, until time.Time, comment string) (id string, err error)
	// Expire ends the silence before its time. It returns no error if the silence is unknown or has
	// already ended.
	Expire(ctx context.Context, id string) error
}

// Machine is the machine that an actuator's call is about, with the step's parameters.
type Machine struct {
	Node, UID, ProviderID string
	// SystemUUID is the UUID that the machine's firmware shows, as its kubelet reports it. A node
	// that is under an attacker's control can report a false one.
	SystemUUID string
	// BootID is the boot ID that the Node shows before the call.
	BootID string
	// Attempt is the ID of the intent, which identifies one attempt of the step.
	Attempt string
	// Policy is the policy whose plan has the step. Alert is the alert that began the repair.
	// Deadline is the time when the attempt counts as failed. All three are empty if the provider
	// is asked about the machine before an attempt. Alert is also nil if a person requested the
	// repair, or if the alert is no longer on the Node.
	Policy   string
	Alert    *remediations.Alert
	Deadline time.Time
	// Soft means that the provider asks the machine's operating system to restart, and does not cut
	// its power.
	Soft bool
	// SwitchedOff means that Drydock itself has switched the machine off. If it is false and the
	// machine is off, a person may have switched it off, and a step must not start it.
	SwitchedOff bool
	// Before has the facts that this provider returned from Survey before the step, for its proof
	// after the step. It is empty if the provider was not asked, or returned none.
	Before remediations.Before
	// Unit is the unit that a restart-unit step restarts. DaemonSet is the DaemonSet that a
	// rollout-restart step restarts.
	Unit, DaemonSet string
	// Template is the template of the request to an external remediator.
	Template remediations.Template
	// GivesUpPods means that Drydock has drained the Node, and that the policy continues although
	// pods may remain on the Node. A provider that drains by itself must not wait for these pods.
	GivesUpPods bool
	// WithoutController is how a drain treats pods that have no controller.
	WithoutController remediations.WithoutController
}

// ErrAccount means that the provider refuses the account, or that the account is exhausted. No call
// for any machine will succeed until a person acts. The engine stops the policy only after calls
// for two machines were refused with this error.
var ErrAccount = errors.New("the provider refuses the account")

// ErrLater means that the call was refused, that certainly nothing was done, and that the same call
// may succeed later. The attempt is given back: it does not count as spent.
var ErrLater = errors.New("the same call may succeed later")

// ErrUnable means that the machine can never do what this attempt requires. The attempt counts as
// spent although no call was made, and the plan continues with its next step.
var ErrUnable = errors.New("the machine cannot do this")

// ErrPassing means that the call was refused before anything was done, because a read that it needs
// failed just now. The same attempt may succeed in a moment.
var ErrPassing = errors.New("it could not be read just now")

// ActAgain is how long the engine waits after an ErrPassing before it calls Act again. A provider
// that needs a longer pause must not return ErrPassing.
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
	// Survey reports what would prevent the step on this machine. If Act would refuse the call now,
	// the answer's Trouble is the reason. Survey changes nothing.
	Survey(ctx context.Context, m Machine) remediations.Survey
}

// Completer is an Actuator whose step has a second part: it switched the machine off, and the
// machine must be switched on again.
type Completer interface {
	// Complete does the part that is due now, and reports whether nothing is left to do. The engine
	// calls it again and again after an attempt that was made or may have been made, also after a
	// crash. So each change must be safe to repeat. Complete calls mayStill right before each
	// change.
	Complete(ctx context.Context, m Machine, mayStill func() error) (done bool, err error)
}

// Replacer is an Actuator that can report on the replacement of a machine.
type Replacer interface {
	// Replaced returns the progress of the replacement. If it returns an error, nothing is known.
	Replaced(ctx context.Context, b remediations.Before) (remediations.Replacement, error)
}

// PowerProver is an Actuator that switches a machine off, and can report whether it is off.
type PowerProver interface {
	// PoweredOff returns what is still missing to prove that the machine is off now. An empty
	// string means that the machine is proven to be off. If it returns an error, nothing is known.
	PoweredOff(ctx context.Context, b remediations.Before) (missing string, err error)
}

// PodProver is an Actuator that recreates pods, and can report whether they exist. It reports
// nothing about machines.
type PodProver interface {
	// Proven returns what is still missing to prove that the pods exist. If it returns an error,
	// nothing is known.
	Proven(ctx context.Context, b remediations.Before) (remediations.PodProof, error)
}

// Worker carries out one long-running remediation that may be repeated any number of times.
type Worker interface {
	// Work returns when the work is done or has turned out to be impossible, or soon after ctx
	// ends. After it has returned, it changes nothing more. It calls mayStill before it begins. It
	// reports its progress, and what blocks the work, through its last argument. An empty blocked
	// means that nothing blocks it.
	Work(ctx context.Context, m Machine, mayStill func() error, tell func(note, blocked string)) error
}

// ErrTaken means that another repair system has reserved the node. The error that wraps ErrTaken
// names that system.
var ErrTaken = errors.New("another repair of this node is under way")

// Reserver agrees with other repair systems which system repairs a node.
type Reserver interface {
	// Free returns nil if Drydock could reserve the node for a step. by is the provider that
	// carries out the step, and is empty for a worker's step. Free changes nothing.
	Free(ctx context.Context, m Machine, by string) error
	// Take reserves the node for Drydock, or renews the reservation. The engine never releases it,
	// because Drydock may be killed before it could: the reservation must end by itself.
	Take(ctx context.Context, m Machine, by string) error
}

// Recorder sends Events. regarding is the name of the Node that the Event is about. If regarding is
// empty, the Event is about Drydock itself, and is attached to Drydock's ledger.
type Recorder interface {
	Event(regarding string, e Event)
}

// Event is one Kubernetes Event. If Events about one object have the same reason and action within
// minutes, Kubernetes combines them into a series and keeps only the first note. So Action must
// differ if no note may be lost.
type Event struct {
	Warning              bool
	Reason, Action, Note string
	// About is the object of the Event if it is neither a Node nor Drydock itself.
	About *remediations.Object
	// Of identifies the repair that the Event is about, for the log.
	Of Trail
}
