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

// Nodes reads a Node from the API server itself: the cache has no addresses, and an old address may
// belong to another machine now.
type Nodes interface {
	Get(ctx context.Context, name string, o metav1.GetOptions) (*corev1.Node, error)
}

// Machines are the hosts behind Nodes.
type Machines struct {
	Client *Client
	Nodes  Nodes
	// Types are the types of a Node's addresses that are tried, in order.
	Types []corev1.NodeAddressType
}

// nodeWithin bounds the read of a Node. It is far below the ten seconds for sending a call, so that
// there is time for another read.
const nodeWithin = 3 * time.Second

// of finds the host of a Node.
func (s Machines) of(ctx context.Context, m engine.Machine) (Host, *corev1.Node, error) {
	reading, cancel := context.WithTimeout(ctx, nodeWithin)
	defer cancel()
	n, err := s.Nodes.Get(reading, m.Node, metav1.GetOptions{})
	if err != nil {
		err = fmt.Errorf("reading the addresses of node %s: %w", m.Node, err)
		if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			err = &kit.Refusal{Why: kit.Passing, Text: err.Error(), Cause: err} // the API server, and not the host
		}
		return Host{}, nil, err
	}
	if string(n.UID) != m.UID {
		return Host{}, nil, fmt.Errorf("node %s is another one than was decided about", m.Node)
	}
	host, err := ofNode(n, s.Types)
	return host, n, err
}

// Unit is the remediation that restarts a unit on the machine behind a Node.
type Unit struct {
	Machines
	// Name is the unit; empty: the step names it.
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

// Survey reads the unit's state and its last journal lines, so that no attempt is spent on a host
// that cannot be reached.
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
		s.Evidence = err.Error() // a restart does not need it
	}
	return s
}

// Rebooter is the remediation reboot, or sysrq, on the machine behind a Node.
type Rebooter struct {
	Machines
	How How
}

// before is kept with an intent: the boot that the reboot must end.
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

// Survey reads the host's boot ID, which must be the one that its kubelet has reported. A different
// ID belongs to another machine, or to a boot whose kubelet has not come up. After a reboot a new
// ID would then prove nothing.
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
		return remediations.Survey{Again: remediations.AskPassing, Trouble: fmt.Sprintf("the boot ID of host %q is %s, and its Node reports %q: its kubelet has not started since the last boot, or the Node's address is another machine's; nothing is rebooted until they agree",
			m.Node, is.ID, clip(reported))}
	}
	if err := is.against(r.How, is.ID); err != nil {
		return surveyOf(fmt.Errorf("host %q: %w", m.Node, err))
	}
	return remediations.Keeping(before{BootID: is.ID})
}

// passing wraps an error that may pass in a moment as the engine's.
func passing(err error) error {
	return &kit.Refusal{Why: kit.Unreached, Text: err.Error(), Cause: err}
}

// unreached is passing if the host could not be reached, or if mayStill withheld the command: the
// host may be slow.
func unreached(err error) error {
	if no := (withheld{}); errors.Is(err, ErrUnreachable) || errors.As(err, &no) {
		return passing(err)
	}
	return err
}

func surveyOf(err error) remediations.Survey { return refusalOf(err).Survey() }

// refusalOf returns what an error concerns. Only Drydock's own key and known_hosts concern more
// than the one host.
func refusalOf(err error) *kit.Refusal {
	e := &kit.Refusal{Why: kit.While, Text: err.Error(), Cause: err}
	switch {
	case errors.As(err, &e): // it names its own concern
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

// evidenceFor bounds the request for a kubelet's last journal lines. A call is good for ten seconds
// after its intent, and a restart does not need these lines.
const evidenceFor = 3 * time.Second

// Kubelets lets a rescue observe the control plane's hosts and restart their kubelets: each has its
// API server and its kubelet.
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
		return remediations.CallRefused, "", fmt.Errorf("no host of the control plane is called %q", name)
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
