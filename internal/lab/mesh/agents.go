package mesh

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
)

const (
	AgentService = "drydock-agent"
	AgentPort    = 9099
	MetricsPort  = 9100
)

// AgentOptions configure how Drydock's agents run.
type AgentOptions struct {
	// Account is the agents' ServiceAccount, in the lab's namespace for Drydock. It must have the
	// rights that agents need.
	Account string
	// Interval is the time between two probes. 0 means the agents' default.
	Interval time.Duration
}

// Agents are running agents of Drydock, one process in every pod of the network, as in a DaemonSet.
type Agents struct {
	network   *Network
	lab       *lab.Lab
	processes map[string]*lab.Process
}

// StartAgents builds Drydock's agent, starts it in every pod, and returns when all are ready. They
// end with the network.
func (n *Network) StartAgents(ctx context.Context, l *lab.Lab, o AgentOptions) (*Agents, error) {
	binary, err := buildAgent(ctx, l)
	if err != nil {
		return nil, err
	}
	key, err := l.WriteSecret("mesh-key", rand.Text()+rand.Text())
	if err != nil {
		return nil, err
	}
	server, err := n.ServeAPI(l)
	if err != nil {
		return nil, err
	}
	kubeconfig, err := l.ServiceAccountKubeconfig(ctx, lab.Namespace, o.Account, server)
	if err != nil {
		return nil, err
	}
	if err := n.publish(ctx, l); err != nil {
		return nil, err
	}
	args := []string{
		"run", "--namespace=" + lab.Namespace, "--service=" + AgentService, "--key-file=" + key, "--kubeconfig=" + kubeconfig,
		fmt.Sprintf("--listen=:%d", AgentPort), fmt.Sprintf("--metrics=:%d", MetricsPort),
	}
	if o.Interval != 0 {
		args = append(args, "--interval="+o.Interval.String())
	}
	a := &Agents{network: n, lab: l, processes: map[string]*lab.Process{}}
	for _, node := range n.nodes {
		p, err := n.StartProcess(ctx, node.Name, lab.Spec{
			Name: "drydock-agent on " + node.Name, Path: binary, Args: append(slices.Clone(args), "--node-name="+node.Name),
			Log:      filepath.Join(l.LogDir(), "drydock-agent-"+node.Name+".log"),
			ReadyURL: "http://" + netip.AddrPortFrom(node.PodIP(), MetricsPort).String() + "/readyz", ReadyClient: n.inside(node.Name),
		})
		if err != nil {
			return nil, err
		}
		a.processes[node.Name] = p
	}
	return a, nil
}

func buildAgent(ctx context.Context, l *lab.Lab) (string, error) {
	binary := filepath.Join(l.Dir(), "bin", "drydock-agent")
	if err := programs.Compile(ctx, binary, "./cmd/drydock-agent"); err != nil {
		return "", err
	}
	return binary, nil
}

// The client connects from within a node's pod, so it reaches that pod whatever the state of the
// mesh is.
func (n *Network) inside(node string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return n.Dial(ctx, node, network, address)
		},
	}}
}

func (n *Network) publish(ctx context.Context, l *lab.Lab, gone ...string) error {
	addresses := discoveryv1.AddressTypeIPv4
	if n.ipv6 {
		addresses = discoveryv1.AddressTypeIPv6
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: AgentService + "-lab", Labels: map[string]string{
			discoveryv1.LabelServiceName: AgentService, discoveryv1.LabelManagedBy: "lab",
		}},
		AddressType: addresses, Endpoints: []discoveryv1.Endpoint{},
	}
	for name, protocol := range map[string]corev1.Protocol{"probe-tcp": corev1.ProtocolTCP, "probe-udp": corev1.ProtocolUDP} {
		at := int32(AgentPort)
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: &name, Protocol: &protocol, Port: &at})
	}
	for _, node := range n.nodes {
		if !slices.Contains(gone, node.Name) {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{node.PodIP().String()}, NodeName: &node.Name})
		}
	}
	all := l.Client().DiscoveryV1().EndpointSlices(lab.Namespace)
	_, err := all.Create(ctx, slice, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = all.Update(ctx, slice, metav1.UpdateOptions{})
	}
	if err != nil {
		return fmt.Errorf("publishing the agents' addresses: %w", err)
	}
	return nil
}

// Remove removes the agents of these nodes and their pods, as a scale-down does.
func (a *Agents) Remove(ctx context.Context, nodes ...string) error {
	if err := a.network.publish(ctx, a.lab, nodes...); err != nil {
		return err
	}
	a.Kill(nodes...)
	for _, node := range nodes {
		if err := a.network.Unplug(node); err != nil {
			return err
		}
	}
	return nil
}

// Restore undoes Remove.
func (a *Agents) Restore(ctx context.Context, nodes ...string) error {
	for _, node := range nodes {
		if err := a.network.Plug(node); err != nil {
			return err
		}
	}
	if err := a.Start(ctx, nodes...); err != nil {
		return err
	}
	return a.network.publish(ctx, a.lab)
}

// Kill kills the agents of these nodes, or all agents.
func (a *Agents) Kill(nodes ...string) {
	var g errgroup.Group
	for _, p := range a.of(nodes) {
		g.Go(func() error { p.Kill(); return nil })
	}
	_ = g.Wait() // the functions return no error
}

// Start starts killed agents again, and returns when they are ready.
func (a *Agents) Start(ctx context.Context, nodes ...string) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, p := range a.of(nodes) {
		g.Go(func() error { return p.Start(ctx) })
	}
	return g.Wait()
}

func (a *Agents) of(nodes []string) []*lab.Process {
	var out []*lab.Process
	for name, p := range a.processes {
		if len(nodes) == 0 || slices.Contains(nodes, name) {
			out = append(out, p)
		}
	}
	return out
}

// Hang suspends the agents of these nodes (SIGSTOP): their ports stay open, but they send nothing.
func (a *Agents) Hang(nodes ...string) error { return a.signal(syscall.SIGSTOP, nodes) }

// Wake lets suspended agents continue.
func (a *Agents) Wake(nodes ...string) error { return a.signal(syscall.SIGCONT, nodes) }

func (a *Agents) signal(s syscall.Signal, nodes []string) error {
	for _, p := range a.of(nodes) {
		if err := p.Signal(s); err != nil {
			return err
		}
	}
	return nil
}
