package main

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/hosts"
)

// newHosts is how units on hosts are restarted; nil: it is not configured.
func newHosts(cfg *config.Config) (*hosts.Client, error) {
	h := cfg.Hosts
	if h == nil {
		return nil, nil
	}
	return hosts.New(hosts.Options{
		User: h.User, Port: h.Port, KeyFile: h.KeyFile, KnownHostsFile: h.KnownHostsFile, Sudo: h.Sudo, Timeout: h.Timeout,
		Units: append([]string{h.Kubelet, h.Containerd}, h.Units...),
	})
}

// addHosts adds what is done on the machines behind Nodes.
func addHosts(actuators map[string]engine.Actuator, cfg *config.Config, client *hosts.Client, clients kubernetes.Interface) {
	unit := hostUnit{client: client, nodes: clients.CoreV1().Nodes()}
	for _, t := range cfg.Hosts.AddressTypes {
		unit.types = append(unit.types, corev1.NodeAddressType(t))
	}
	actuators["restart-unit"] = unit
	unit.unit = cfg.Hosts.Kubelet
	actuators["restart-kubelet"] = unit
	unit.unit = cfg.Hosts.Containerd
	actuators["restart-containerd"] = unit
}

// hostUnit restarts a unit on the machine behind a Node.
type hostUnit struct {
	client *hosts.Client
	unit   string // empty: the step says which
	// nodes are read live: the cache has no addresses, and an old one may be another machine's by now.
	nodes typedcorev1.NodeInterface
	types []corev1.NodeAddressType
}

func (h hostUnit) on(ctx context.Context, m engine.Machine) (host hosts.Host, unit string, err error) {
	if unit = h.unit; unit == "" {
		unit = m.Unit
	}
	n, err := h.nodes.Get(ctx, m.Node, metav1.GetOptions{})
	if err != nil {
		return host, unit, fmt.Errorf("reading the addresses of node %s: %w", m.Node, err)
	}
	if string(n.UID) != m.UID {
		return host, unit, fmt.Errorf("node %s is another one than was decided about", m.Node)
	}
	host, err = hosts.OfNode(n, h.types)
	return host, unit, err
}

func (h hostUnit) Act(ctx context.Context, m engine.Machine, mayStill func() error) (remediations.CallOutcome, error) {
	host, unit, err := h.on(ctx, m)
	if err != nil {
		return remediations.CallRefused, err
	}
	outcome, err := h.client.Restart(ctx, host, unit, m.Attempt, mayStill)
	return outcome, hostError(err)
}

// Survey asks the host for the unit and for what it last said, so that a host that cannot be reached costs no attempt.
func (h hostUnit) Survey(ctx context.Context, m engine.Machine) remediations.Survey {
	host, unit, err := h.on(ctx, m)
	if err != nil {
		return remediations.Survey{Trouble: err.Error(), Again: askPassing}
	}
	status, err := h.client.Status(ctx, host, unit)
	if err == nil && !status.Loaded {
		err = fmt.Errorf("%w: %s of host %s is masked, or cannot be loaded", hosts.ErrNoUnit, unit, host.Name)
	}
	if err != nil {
		return hostSurvey(err)
	}
	s := remediations.Survey{}
	if s.Evidence, err = h.client.Evidence(ctx, host, unit); err != nil {
		s.Evidence = err.Error() // a restart does not need it
	}
	return s
}

func hostSurvey(err error) remediations.Survey {
	s := remediations.Survey{Trouble: err.Error(), Fleetwide: errors.Is(err, hosts.ErrSetup), Again: askPassing}
	if errors.Is(err, hosts.ErrHostKey) || errors.Is(err, hosts.ErrDenied) || errors.Is(err, hosts.ErrNoUnit) || errors.Is(err, hosts.ErrSetup) {
		s.Again = askMended
	}
	return s
}

// hostError is the host's sentence, known to the engine where a restart runs there already.
func hostError(err error) error {
	if errors.Is(err, hosts.ErrBusy) {
		return busyError{err}
	}
	return err
}

type busyError struct{ error }

func (busyError) Is(target error) bool { return target == engine.ErrBusy }
