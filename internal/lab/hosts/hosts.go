package hosts

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
)

// Options configure the hosts. The zero value means three control-plane hosts (cp-1 to cp-3) and
// two workers (worker-1 and worker-2).
type Options struct {
	ControlPlane, Workers int
	// LeaseSeconds is how long a node's lease lasts. Its kubelet renews it four times in that
	// period. The default is 5.
	LeaseSeconds   int
	NoControlPlane bool
	// Pods makes the hosts able to run a real kubelet and its pods (see pods.go). The caller
	// installs the kubelet and containerd.
	Pods bool
	// Programs are additional programs for /usr/local/bin of each host: the path on this machine by
	// the name there.
	Programs map[string]string
	// Out receives the progress. The default is standard error.
	Out io.Writer
}

// Hosts are running hosts. Its methods may be called concurrently.
type Hosts struct {
	options  Options
	dir      string
	lock     *os.File
	programs map[string]string
	groups   []string // of all hosts, one for each hierarchy of control groups
	mounts   *namespace
	network  *network
	keys     *keys
	hosts    []*Host
	balancer *balancer
	caFile   string

	mu   sync.Mutex
	keep bool
}

// New boots the hosts and returns when each answers over SSH. Their kubelets do nothing until
// StartCluster is called.
func New(ctx context.Context, o Options) (*Hosts, error) {
	if err := o.Supported(); err != nil {
		return nil, err
	}
	if o.ControlPlane == 0 && !o.NoControlPlane {
		o.ControlPlane = 3
	}
	if o.Workers == 0 {
		o.Workers = 2
	}
	if o.LeaseSeconds == 0 {
		o.LeaseSeconds = 5
	}
	if o.Out == nil {
		o.Out = os.Stderr
	}
	h := &Hosts{options: o}
	if err := h.start(ctx); err != nil {
		h.Keep()
		h.Close()
		return nil, fmt.Errorf("starting hosts (logs: %s): %w", h.LogDir(), err)
	}
	return h, nil
}

func (h *Hosts) start(ctx context.Context) (err error) {
	if err := h.openFolder(); err != nil {
		return err
	}
	if h.programs = h.options.Programs; !h.options.Pods {
		if h.programs, err = programs.Build(ctx, h.options.Out, "etcd", "kube-apiserver"); err != nil {
			return err
		}
		if h.programs["kubelet"], err = h.buildKubelet(ctx); err != nil {
			return err
		}
	}
	tree, err := h.options.tree().base(ctx, h.options.Out)
	if err != nil {
		return err
	}
	if h.groups, err = newGroups(h.options.Pods); err != nil {
		return err
	}
	if h.mounts, err = newNamespace(unix.CLONE_NEWNS); err != nil {
		return err
	}
	layers := filepath.Join(h.dir, "layers")
	if err := os.Mkdir(layers, 0o755); err != nil {
		return fmt.Errorf("making the folder of the hosts' layers: %w", err)
	}
	if err := h.mounts.do(func() error { return mountMemory(layers) }); err != nil {
		return err
	}
	if h.network, err = newNetwork(); err != nil {
		return err
	}
	if h.keys, err = newKeys(filepath.Join(h.dir, "ssh")); err != nil {
		return err
	}
	for i := range h.options.ControlPlane {
		h.hosts = append(h.hosts, &Host{hosts: h, Name: fmt.Sprintf("cp-%d", i+1), ControlPlane: true, number: 11 + i})
	}
	for i := range h.options.Workers {
		h.hosts = append(h.hosts, &Host{hosts: h, Name: fmt.Sprintf("worker-%d", i+1), number: 101 + i})
	}
	g, gctx := errgroup.WithContext(ctx)
	for _, host := range h.hosts {
		g.Go(func() error {
			if err := host.build(tree, layers); err != nil {
				return fmt.Errorf("making host %s: %w", host.Name, err)
			}
			return host.On(gctx)
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return h.keys.writeKnownHosts(h.hosts)
}

// As with a lab's folder, a locked file shows that the owner is alive, and the next lab removes a
// folder whose lock is free.
func (h *Hosts) openFolder() (err error) {
	lab.RemoveOrphans()
	if h.dir, err = os.MkdirTemp("", "drydock-lab-hosts-"); err != nil {
		return fmt.Errorf("making the folder of the hosts: %w", err)
	}
	if h.lock, err = os.OpenFile(filepath.Join(h.dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("making the lock of the hosts' folder: %w", err)
	}
	if err := syscall.Flock(int(h.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("locking the hosts' folder: %w", err)
	}
	return nil
}

// Dir returns the path of the hosts' folder.
func (h *Hosts) Dir() string { return h.dir }

// CAFile returns the file with the authority of the API servers. It exists once the cluster was
// started.
func (h *Hosts) CAFile() string { return h.caFile }

// LogDir returns the folder with the logs of the hosts' consoles.
func (h *Hosts) LogDir() string { return filepath.Join(h.dir, "logs") }

// Keep makes Close leave the folder with the logs.
func (h *Hosts) Keep() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.keep = true
}

// Machine returns the address of this machine in the hosts' network.
func (h *Hosts) Machine() string { return h.network.address(1).String() }

// All returns all hosts. The control-plane hosts come first.
func (h *Hosts) All() []*Host { return h.hosts }

// Host returns the host with that name. It panics if there is none.
func (h *Hosts) Host(name string) *Host {
	for _, host := range h.hosts {
		if host.Name == name {
			return host
		}
	}
	panic("there is no host " + name)
}

// Close powers off all hosts and removes their data.
func (h *Hosts) Close() {
	if h.balancer != nil {
		h.balancer.close()
	}
	var wg sync.WaitGroup
	for _, host := range h.hosts {
		wg.Go(host.remove)
	}
	wg.Wait()
	if h.network != nil {
		h.network.close()
	}
	if h.mounts != nil {
		h.mounts.close()
	}
	for _, group := range h.groups {
		removeGroup(group)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dir != "" && h.keep {
		_ = os.WriteFile(filepath.Join(h.dir, ".keep"), nil, 0o600) // at worst a later lab removes it
	} else if h.dir != "" {
		_ = os.RemoveAll(h.dir) // at worst a later lab removes it
	}
	if h.lock != nil {
		_ = h.lock.Close() // an error does not matter, because no process waits for the lock
	}
}
