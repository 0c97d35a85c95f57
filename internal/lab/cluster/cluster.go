package cluster

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/hosts"
	"drydock.dev/drydock/internal/lab/programs"
)

// Options configure the cluster.
type Options struct {
	// APIServerPort is the port of the API server. 0 means 6443.
	APIServerPort int
	Built         Built
	Out           io.Writer
}

// Cluster is a running cluster. For a person's own cluster (see Connect), Lab and Hosts are nil.
type Cluster struct {
	*lab.Lab
	Hosts *hosts.Hosts

	options     Options
	dir         string
	credentials lab.Credentials
	ca          []byte   // the lab's authority, which signs all certificates
	archives    []string // of the images
	processes   []*lab.Process
	listeners   []net.Listener
	client      kubernetes.Interface
	kubeconfig  string   // of an administrator
	values      []string // files with the values of the chart's release, the last one first in rank
	nodes       []string // those that a test may disturb
	pauseImage  string
	// A person's own cluster had no namespace for Drydock before.
	madeNamespace bool
}

const (
	pauseImage   = "drydock.dev/pause:lab"
	drydockImage = "docker.io/drydock/drydock" // the chart's default
)

// Client is an administrator's.
func (c *Cluster) Client() kubernetes.Interface { return c.client }

// AdminKubeconfig is the path of an administrator's kubeconfig.
func (c *Cluster) AdminKubeconfig() string { return c.kubeconfig }

// Nodes are the names of the nodes that a test may disturb.
func (c *Cluster) Nodes() []string { return c.nodes }

// PauseImage is an image that each node has. A container with it only runs.
func (c *Cluster) PauseImage() string { return c.pauseImage }

func hostOptions() hosts.Options {
	return hosts.Options{NoControlPlane: true, Workers: 3, Pods: true}
}

// Supported returns an error that names what this machine lacks for a cluster.
func Supported() error { return hostOptions().Supported() }

// Built are the paths of programs by their names.
type Built map[string]string

// Prepare builds what is missing, and then moves this process into a network of its own (see
// Apart). There it is called again, and returns.
func Prepare(ctx context.Context, out io.Writer) (*Machine, Built, error) {
	built, err := build(ctx, out)
	if err != nil {
		return nil, nil, err
	}
	machine, err := Apart()
	return machine, built, err
}

// Only what is missing needs the machine's network.
func build(ctx context.Context, out io.Writer) (Built, error) {
	dir, err := programs.Kept("cluster")
	if err != nil {
		return nil, err
	}
	if err := hostOptions().Prepare(ctx, out); err != nil {
		return nil, err
	}
	built, err := programs.Build(ctx, out, programs.Cluster...)
	if err != nil {
		return nil, err
	}
	return built, compile(ctx, dir, built, "./cmd/drydock", "./cmd/kubectl-drydock", "./internal/lab/cluster/pause")
}

func compile(ctx context.Context, dir string, built Built, packages ...string) error {
	for _, pkg := range packages {
		name := filepath.Base(pkg)
		built[name] = filepath.Join(dir, name)
		if err := programs.Compile(ctx, built[name], pkg); err != nil {
			return err
		}
	}
	return nil
}

// Start starts the cluster and installs Drydock. The process must be in a network of its own. When
// the context ends, the lab's processes are killed; Close also ends the hosts.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.APIServerPort == 0 {
		o.APIServerPort = 6443
	}
	c := &Cluster{options: o}
	if err := c.startAll(ctx); err != nil {
		c.Keep()
		c.Close()
		return nil, fmt.Errorf("starting the cluster (logs: %s): %w", c.logDir(), err)
	}
	return c, nil
}

func (c *Cluster) startAll(ctx context.Context) (err error) {
	o := hostOptions()
	o.Out, o.Programs = c.options.Out, map[string]string{}
	for _, name := range nodePrograms {
		o.Programs[name] = c.options.Built[name]
	}
	if c.Hosts, err = hosts.New(ctx, o); err != nil {
		return err
	}
	for _, host := range c.Hosts.All() {
		c.nodes = append(c.nodes, host.Name)
	}
	c.pauseImage, c.dir = pauseImage, filepath.Join(c.Hosts.Dir(), "cluster")
	if err := os.Mkdir(c.dir, 0o755); err != nil {
		return fmt.Errorf("making the cluster's folder: %w", err)
	}
	version, err := chartVersion()
	if err != nil {
		return err
	}
	for _, i := range []image{
		{name: pauseImage, program: c.options.Built["pause"]},
		{name: drydockImage + ":" + version, program: c.options.Built["drydock"], user: "65532:65532"},
	} {
		archive, err := i.write(c.dir)
		if err != nil {
			return err
		}
		c.archives = append(c.archives, archive)
	}
	rules, err := c.writeRules()
	if err != nil {
		return err
	}
	labDir := filepath.Join(c.dir, "lab")
	if c.Lab, err = lab.Start(ctx, lab.Options{
		Dir: labDir, APIServers: c.startControlPlane, RuleFiles: []string{rules}, Out: c.options.Out,
		ScrapeConfigs: []map[string]any{scrapeDrydock(filepath.Join(labDir, "admin.kubeconfig"))},
	}); err != nil {
		return err
	}
	c.client, c.kubeconfig = c.Lab.Client(), c.Lab.AdminKubeconfig()
	_, listener, err := c.expose(ctx, c.AlertmanagerURLs()[0])
	if err != nil {
		return err
	}
	c.listeners = append(c.listeners, listener)
	if err := c.prepare(ctx); err != nil {
		return err
	}
	return c.Install(ctx)
}

func (c *Cluster) start(ctx context.Context, s lab.Spec) error {
	s.Path, s.Log, s.Env = c.options.Built[s.Name], filepath.Join(c.logDir(), s.Name+".log"), lab.ProgramEnv()
	p, err := lab.StartProcess(ctx, s)
	if err != nil {
		return err
	}
	c.processes = append(c.processes, p)
	return nil
}

func (c *Cluster) logDir() string { return filepath.Join(c.dir, "logs") }

// Hosts and pods reach a server on loopback at the returned URL.
func (c *Cluster) expose(ctx context.Context, server string) (string, net.Listener, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", nil, err
	}
	address := net.JoinHostPort(c.Hosts.Machine(), u.Port())
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return "", nil, fmt.Errorf("making %s reachable for hosts and pods: %w", server, err)
	}
	go forward(listener, u.Host)
	u.Host = address
	return u.String(), listener, nil
}

// Keep makes Close leave the folder with the logs, and returns the folder.
func (c *Cluster) Keep() string {
	if c.Hosts == nil {
		return c.dir
	}
	c.Hosts.Keep()
	return c.Hosts.Dir()
}

// Close ends everything and removes the data.
func (c *Cluster) Close() {
	for _, listener := range c.listeners {
		_ = listener.Close()
	}
	if c.Lab != nil {
		c.Stop()
	}
	for _, p := range c.processes {
		p.Kill()
	}
	if c.Hosts != nil {
		c.Hosts.Close()
	}
}

// A shell script. A host has another first process after each boot.
const onHost = `#!/bin/sh
# on HOST COMMAND...: runs a command as root on a host of the cluster.
for nspawn in $(pgrep -f "^systemd-nspawn .*--directory=%s/layers/$1/root "); do
  first=$(pgrep -P "$nspawn") && shift && exec nsenter --target "$first" --all -- setpriv %s "$@"
done
echo "on: host $1 does not run; the hosts are worker-1, worker-2 and worker-3" >&2
exit 1
`

// Commands makes a folder with commands for a person's shell: kubectl, kubectl drydock, and on HOST
// COMMAND.
func (c *Cluster) Commands() (string, error) {
	dir := filepath.Join(c.dir, "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("making the folder of the commands: %w", err)
	}
	for _, name := range []string{"kubectl", "kubectl-drydock"} {
		if err := os.Symlink(c.options.Built[name], filepath.Join(dir, name)); err != nil {
			return "", fmt.Errorf("making the command %s: %w", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "on"), fmt.Appendf(nil, onHost, c.Hosts.Dir(), hosts.Bounding), 0o755); err != nil { //nolint:gosec // it must be executable
		return "", fmt.Errorf("making the command on: %w", err)
	}
	return dir, nil
}

// Run runs one of the cluster's programs, for example kubectl or helm, as an administrator.
func (c *Cluster) Run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, c.options.Built[program], args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	if c.Hosts != nil { // elsewhere the kubeconfig may run a program that needs the person's folder
		cmd.Env = append(cmd.Env, "HOME="+c.dir)
	}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("running %s %s: %w: %s%s", program, strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String(), nil
}

func ip(ctx context.Context, lines ...string) error {
	cmd := exec.CommandContext(ctx, "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("running ip: %w: %s\nof\n%s", err, out, strings.Join(lines, "\n"))
	}
	return nil
}
