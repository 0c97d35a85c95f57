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

// Nodes reads a Node from the API server. Drydock's cache keeps no addresses of Nodes, and an old
// address may now belong to another machine.
type Nodes interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Node, error)
}

// Machines finds the host of a Node, and calls it through the Client.
type Machines struct {
	Client *Client
	Nodes  Nodes
	// Types are the types of a Node's addresses that Drydock uses, in this order.
	Types []corev1.NodeAddressType
}

// nodeWithin limits the read of a Node. It is short, because a call must be sent within ten
// seconds, and there must be time for a second read.
const nodeWithin = 3 * time.Second

// of returns the host of the Node that m names, and the Node.
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

// Unit is the remediation that restarts a unit on a Node's machine.
type Unit struct {
	Machines
	// Name is the unit. If it is empty, the step names the unit.
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

// Survey reads the unit's state and its last journal lines before an intent is written. So no
// attempt is used on a host that is unreachable.
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

// Rebooter is the remediation reboot or sysrq on a Node's machine.
type Rebooter struct {
	Machines
	How How
}

// before is recorded with the intent. BootID is the boot that the reboot must end.
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

// Survey reads the host's boot ID, which must equal the ID in the Node's status. A different ID
// belongs to another machine, or the kubelet has not started since the last boot. In both cases, a
// new boot ID on the Node would not prove that Drydock's reboot took place.
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

// passing returns a refusal for an error of this host that may pass in a moment.
func passing(err error) error {
	return &kit.Refusal{Why: kit.Unreached, Text: err.Error(), Cause: err}
}

// unreached wraps the error as passing in two cases: the host could not be reached, or mayStill
// stopped the command, which may happen because the host is slow.
func unreached(err error) error {
	if no := (withheld{}); errors.Is(err, ErrUnreachable) || errors.As(err, &no) {
		return passing(err)
	}
	return err
}

func surveyOf(err error) remediations.Survey { return refusalOf(err).Survey() }

// refusalOf returns the error as a refusal with its concern. Only an error of Drydock's own key or
// known_hosts file concerns more than one host.
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

// evidenceFor limits the read of a kubelet's last journal lines. A call must be sent within ten
// seconds after its intent, and a restart does not need these lines.
const evidenceFor = 3 * time.Second

// Kubelets lets the rescue of API servers observe the control-plane hosts and restart their
// kubelets. Each of these hosts runs an API server and a kubelet.
type Kubelets struct {
	*ControlPlane
	Client *Client
	// Unit is the name of the kubelet's unit.
	Unit string
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
