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

// ErrConflict: the object changed since it was read; nothing was written. Decide again.
var ErrConflict = errors.New("the object was changed by another writer in the meantime")

// ErrUnwritten: the API server refused the write, and certainly nothing was written.
var ErrUnwritten = errors.New("the API server refused the write")

// ErrNotFound: the object does not exist.
var ErrNotFound = errors.New("the object does not exist")

// Fleet shows the cluster's Nodes.
type Fleet interface {
	// Nodes returns all Nodes as the cache has them. They are shared: read only.
	Nodes(ctx context.Context) ([]*corev1.Node, error)
	// Node reads one Node from the API server itself. ErrNotFound: it is gone.
	Node(ctx context.Context, name string) (*corev1.Node, error)
	// Lease reads a node's heartbeat from the API server. ErrNotFound: the node has none.
	Lease(ctx context.Context, node string) (renewedAt time.Time, duration time.Duration, err error)
	// Leases reads the leases of these nodes, all at the same time. One that does not exist is missing in the answer; an error
	// means that some lease could not be read.
	Leases(ctx context.Context, nodes []string) (map[string]signs.Lease, error)
	// Heartbeats reads all nodes' leases, by node.
	Heartbeats(ctx context.Context) (map[string]signs.Lease, error)
}

// Changing is a Fleet that knows which of its Nodes changed, so that a pass need not go through all of them.
type Changing interface {
	// Changed gives the Nodes that came or changed since it was last asked, in a list that is the caller's, and the names of those
	// that are gone. False: it cannot say, and Nodes has them all.
	Changed(ctx context.Context) (nodes []*corev1.Node, gone []string, ok bool)
}

// Rewinding is a Fleet that notes when its cache went back to an older state, also while this replica does not lead.
type Rewinding interface {
	// WentBack says what went back last, and when; zero: nothing did.
	WentBack() (what string, at time.Time)
}

// NodeChange is one write to a Node, all of it or nothing. A nil value removes the key.
type NodeChange struct {
	Annotations, Labels map[string]*string
	Unschedulable       *bool
	// OutOfService sets the taint that says that the machine is off for good, with that time, which makes it Drydock's
	// own; InService takes the one with that time off.
	OutOfService, InService *time.Time
}

// Journal writes Drydock's word on Nodes.
type Journal interface {
	// Write applies the change to the Node as it was read. ErrConflict: the Node is not as it was any more.
	// ErrNotFound: it is gone. ErrUnwritten: it is refused. Any other error: it may have been written or not; read before deciding again.
	Write(ctx context.Context, n *corev1.Node, c NodeChange) (*corev1.Node, error)
	// OwnsCordon asks managedFields whether the cordon is Drydock's own. One live read.
	OwnsCordon(ctx context.Context, node string) (bool, error)
	// OwnsAnnotations asks managedFields which of the annotations are Drydock's alone. One live read.
	OwnsAnnotations(ctx context.Context, node string, keys []string) (owned []string, err error)
	// SetBy asks managedFields which field manager owns an annotation of the Node, and when that manager last changed the
	// Node. An empty manager: managedFields name nobody. One live read.
	SetBy(ctx context.Context, node, annotation string) (manager string, at time.Time, err error)
}

// Conditions shows on a Node, by its conditions, what its record says that Drydock does.
type Conditions interface {
	// Show brings the conditions of the Node as it was read to where its record is, and returns the Node as it is then. After an error
	// the conditions may be set or not; whoever implements it tries again by itself.
	Show(ctx context.Context, n *corev1.Node) (*corev1.Node, error)
}

// LedgerStore keeps the ledger.
type LedgerStore interface {
	// Load returns the data and the version to hand to Save. ErrNotFound: there is no ledger.
	Load(ctx context.Context) (data map[string]string, version string, err error)
	// Save replaces the data if the ledger still has that version; an empty version creates it. ErrConflict: somebody
	// else saved, or created, in the meantime. ErrNotFound: it was deleted. Any other error: it may have been saved.
	Save(ctx context.Context, data map[string]string, version string) (newVersion string, err error)
}

// AlertSource asks the Alertmanagers.
type AlertSource interface {
	// Look asks every replica now. What a replica would not say is in its own Err; Look itself does not fail.
	Look(ctx context.Context) []alerts.Replica
}

// Silencer keeps Alertmanager quiet about a node under repair.
type Silencer interface {
	// Silence makes a silence of the alerts that carry all of the labels, until then, and returns its id. After an error
	// it may have been made or not.
	Silence(ctx context.Context, labels map[string]string, until time.Time, comment string) (id string, err error)
	// Expire ends it before its time; one that is unknown or over is no error.
	Expire(ctx context.Context, id string) error
}

// Machine is what an actuator acts on, and what the step says of how.
type Machine struct {
	Node, UID, ProviderID string
	// SystemUUID is the one that the machine's firmware shows, as its kubelet says: no better than the Node's word.
	SystemUUID string
	// BootID is the one that the Node shows before the call.
	BootID string
	// Attempt is the intent's id.
	Attempt string
	// Policy is whose step this is, Alert what began the repair, and Deadline when the attempt counts as failed. Who is asked before the
	// intent has none of them. Nil: a person asked for the repair, or the alert is no longer on the Node.
	Policy   string
	Alert    *remediations.Alert
	Deadline time.Time
	// Soft: the machine's operating system is asked, instead of its power being cut.
	Soft bool
	// Before is what the provider kept when it was asked before the intent; empty: it was not asked, or kept nothing.
	Before remediations.Before
	// Unit is the unit that a restart-unit restarts, DaemonSet the one that a rollout-restart does.
	Unit, DaemonSet string
	// Template is what an external remediator is asked by.
	Template remediations.Template
	// GivesUpPods: Drydock has drained the Node, and its policy goes on with the pods that it could not evict. A provider that drains
	// by itself must not wait for them.
	GivesUpPods bool
	// WithoutController is what a drain does with pods that have no controller.
	WithoutController remediations.WithoutController
}

// ErrAccount: the provider refuses the account, or it is spent. No call for any machine will succeed until a person acts. The engine
// believes it, and stops the policy, when calls for two machines were refused so.
var ErrAccount = errors.New("the provider refuses the account")

// ErrLater: the call was refused, certainly nothing was done, and the same call may succeed later. The attempt is given back.
var ErrLater = errors.New("the same call may succeed later")

// ErrUnable: the machine can never do what this attempt asks, so the attempt is spent though no call left, and the plan goes on.
var ErrUnable = errors.New("the machine cannot do this")

// ErrPassing: the call was refused before anything was done, because what it needs to know could not be read just now. The same
// attempt may succeed in a moment.
var ErrPassing = errors.New("it could not be read just now")

// ActAgain is how long the engine waits before it asks again after an ErrPassing. Who asks to be left alone for longer gives none.
const ActAgain = time.Second

// Actuator carries out one remediation that must happen at most once an attempt.
type Actuator interface {
	// Act calls the provider. It asks mayStill at the very last moment before the call that changes something, and
	// does not make it where that gives an error. The outcome is never empty; the error says why it is not accepted, is
	// ErrAccount where that concerns more than this machine, and ErrPassing where a read failed that may succeed in a moment. Where
	// it is ErrPassing and has not asked mayStill, Act is asked again within the same attempt. An Act that was refused without asking
	// mayStill sent nothing: its attempt is given back, unless the error is ErrUnable. After mayStill, only ErrPassing, ErrLater and
	// ErrAccount give it back. An error with a method Survey says as that does whom it concerns. One without counts for no
	// onUnreachable: continue, because it may be about all machines.
	Act(ctx context.Context, m Machine, mayStill func() error) (remediations.CallOutcome, error)
}

// Surveyor is an Actuator that can be asked about a machine before anything is decided.
type Surveyor interface {
	// Survey changes nothing. What could only be refused is in the answer's Trouble.
	Survey(ctx context.Context, m Machine) remediations.Survey
}

// Replacer is an Actuator that can say what became of a machine that it was told to replace.
type Replacer interface {
	// Replaced says how far the replacement is. An error proves nothing.
	Replaced(ctx context.Context, b remediations.Before) (remediations.Replacement, error)
}

// PodProver is an Actuator that can say whether the pods that it had made anew are there. It says nothing about machines.
type PodProver interface {
	// Proven says what the proof lacks. An error proves nothing.
	Proven(ctx context.Context, b remediations.Before) (remediations.PodProof, error)
}

// Worker carries out one remediation that takes its time and may be repeated freely.
type Worker interface {
	// Work returns when it is done, when it cannot be, or soon after ctx ends; from then on it changes nothing more. It asks
	// mayStill before it begins. tell is given how far it is, and what is in its way; empty: nothing.
	Work(ctx context.Context, m Machine, mayStill func() error, tell func(note, blocked string)) error
}

// ErrTaken: somebody else has reserved the node; the error that wraps it names them.
var ErrTaken = errors.New("another repair of this node is under way")

// Reserver shares with other repair systems which of them repairs a node.
type Reserver interface {
	// Free is nil where the node could be taken for a step that this provider carries out; of a worker's there is none. It changes
	// nothing.
	Free(ctx context.Context, m Machine, by string) error
	// Take takes the node for Drydock, or keeps it. Who gives it back is no matter of the engine's: Drydock may be killed.
	Take(ctx context.Context, m Machine, by string) error
}

// Recorder tells people. Regarding is a Node's name; empty: Drydock itself, by its ledger.
type Recorder interface {
	Event(regarding string, e Event)
}

// Event is one Kubernetes Event. Events of one reason and action on one object within minutes are folded into a
// series that keeps the first note, so Action must differ where notes must not be lost.
type Event struct {
	Warning              bool
	Reason, Action, Note string
	// About is what the Event is about, where that is neither a Node nor Drydock itself.
	About *remediations.Object
	// Of is the repair that the Event is about, for the log.
	Of Trail
}
