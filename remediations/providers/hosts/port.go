package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
)

// Nodes reads a Node from the API server, and not from a cache: an old address may now belong to
// another machine.
type Nodes interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Node, error)
}

// Machines finds the host of a Node.
type Machines struct {
	Client *Client
	Nodes  Nodes
	// Types are the types of Node addresses to use, the preferred ones first.
	Types []corev1.NodeAddressType
}

// Two reads of a Node must fit into the ten seconds within which a call must be sent after its
// intent is written.
const nodeWithin = 3 * time.Second

func (s Machines) of(ctx context.Context, m engine.Machine) (Host, *corev1.Node, error) {
	reading, cancel := context.WithTimeout(ctx, nodeWithin)
	defer cancel()
	n, err := s.Nodes.Get(reading, m.Node, metav1.GetOptions{})
	if err != nil {
		err = fmt.Errorf("reading the addresses of node %s: %w", m.Node, err)
		if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			err = &kit.Refusal{Why: kit.Passing, Text: err.Error(), Cause: err} // the API server failed, not the host
		}
		return Host{}, nil, err
	}
	if string(n.UID) != m.UID {
		return Host{}, nil, fmt.Errorf("node %s was replaced after the decision (other UID)", m.Node)
	}
	host, err := ofNode(n, s.Types)
	return host, n, err
}

// Unit restarts a systemd unit on a Node's machine.
type Unit struct {
	Machines
	// Name is the unit's name. Empty means the unit that the plan's step names.
	Name string
}

// Act implements engine.Actuator.
func (u Unit) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	host, _, err := u.of(ctx, m)
	if err != nil {
		return remediations.CallRefused, err
	}
	outcome, err := u.Client.Restart(ctx, host, cmp.Or(u.Name, m.Unit), m.Attempt, mayStill)
	return outcome, unreached(err)
}

// Survey reads the unit's state and its last journal lines. If the host is unreachable, the step
// does not begin, and no attempt is used up.
func (u Unit) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	unit := cmp.Or(u.Name, m.Unit)
	host, _, err := u.of(ctx, m)
	if err != nil {
		return surveyOf(err)
	}
	status, err := u.Client.Status(ctx, host, unit)
	if err == nil && !status.Loaded {
		err = fmt.Errorf("%w: %s of host %s is masked, or cannot be loaded", ErrNoUnit, unit, host.Name)
	}
	if err != nil {
		return surveyOf(err)
	}
	s := remediations.Survey{}
	if s.Evidence, err = u.Client.Evidence(ctx, host, unit); err != nil {
		s.Evidence = err.Error() // a restart does not need the journal
	}
	return s
}

// Rebooter reboots a Node's machine, by the step reboot or sysrq.
type Rebooter struct {
	Machines
	How How
}

// BootID is recorded on the Node before the reboot, which is carried out only while the host still
// has it.
type before struct {
	BootID string `json:"bootID"`
}

// Act implements engine.Actuator.
func (r Rebooter) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	var kept before
	host, _, err := r.of(ctx, m)
	if err == nil {
		err = m.Before.Read(&kept)
	}
	if err != nil {
		return remediations.CallRefused, fmt.Errorf("rebooting host %q: nothing was done: %w", m.Node, err)
	}
	outcome, err := r.Client.Reboot(ctx, host, r.How, kept.BootID, m.Attempt, mayStill)
	return outcome, unreached(err)
}

// Survey requires that the host's boot ID equals the one in the Node's status. Otherwise the host
// is another machine, or the kubelet has not started since the last boot. A new boot ID would then
// not prove a reboot by Drydock.
func (r Rebooter) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	host, n, err := r.of(ctx, m)
	if err != nil {
		return surveyOf(err)
	}
	is, err := r.Client.Boot(ctx, host)
	if err != nil {
		return surveyOf(err)
	}
	if reported := n.Status.NodeInfo.BootID; reported != is.ID {
		return remediations.Survey{Again: remediations.AskPassing, Trouble: fmt.Sprintf("the boot ID of host %q is %s, but its Node reports %q: the kubelet has not started since the last boot, or the Node's address belongs to another machine; Drydock does not reboot until both IDs agree",
			m.Node, is.ID, clip(reported))}
	}
	if err := is.against(r.How, is.ID); err != nil {
		return surveyOf(fmt.Errorf("host %q: %w", m.Node, err))
	}
	return remediations.Keeping(before{BootID: is.ID})
}

func passing(err error) error {
	return &kit.Refusal{Why: kit.Unreached, Text: err.Error(), Cause: err}
}

// A slow host may be the reason why mayStill stopped the command, so both errors count as passing.
func unreached(err error) error {
	if no := (withheld{}); errors.Is(err, ErrUnreachable) || errors.As(err, &no) {
		return passing(err)
	}
	return err
}

func surveyOf(err error) remediations.Survey { return refusalOf(err).Survey() }

// The refusal concerns more than one host only if Drydock's own key or known_hosts file is
// unusable, or if the error itself says so.
func refusalOf(err error) *kit.Refusal {
	e := &kit.Refusal{Why: kit.While, Text: err.Error(), Cause: err}
	switch {
	case errors.As(err, &e): // the error has its own concern
	case errors.Is(err, errSetup):
		e.Why = kit.Setup
	case errors.Is(err, ErrUnreachable):
		e.Why = kit.Unreached
	case errors.Is(err, ErrHostKey):
		e.Why, e.NeedsPerson = kit.Unreached, true
	case errors.Is(err, errDenied), errors.Is(err, ErrNoUnit):
		e.Why = kit.Machine
	}
	return e
}

// A restart does not need the journal lines, and the command must be sent within ten seconds of the
// decision.
const evidenceFor = 3 * time.Second

// Kubelets observes the API servers on the control-plane hosts, and restarts the kubelets of these
// hosts.
type Kubelets struct {
	*ControlPlane
	Client *Client
	Unit   string
}

// Restart implements rescue.Hosts.
func (k Kubelets) Restart(ctx context.Context, name, attempt string, mayStill func() error) (remediations.CallOutcome, string, error) {
	host, ok := k.Host(name)
	if !ok {
		return remediations.CallRefused, "", fmt.Errorf("controlPlane.hosts has no host %q", name)
	}
	asking, cancel := context.WithTimeout(ctx, evidenceFor)
	evidence, err := k.Client.Evidence(asking, host, k.Unit)
	cancel()
	if err != nil {
		evidence = err.Error()
	}
	outcome, err := k.Client.Restart(ctx, host, k.Unit, attempt, mayStill)
	return outcome, evidence, err
}
