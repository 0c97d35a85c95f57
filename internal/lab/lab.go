package lab

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lab/programs"
)

// Lab is a running cluster. Its methods may be called concurrently.
type Lab struct {
	options Options
	*folder
	programs map[string]string
	began    time.Time
	release  func() bool // stops watching the context that was given to Start

	ca      *authority
	serving keypair
	api     string // the API server's URL
	admin   *rest.Config
	client  kubernetes.Interface
	kinds   meta.ResettableRESTMapper // the API server's kinds, from the last discovery
	kubelet kubernetes.Interface      // a client with the identity of the simulated kubelets
	version string                    // Kubernetes' version, which the kubelets report

	prometheus    string
	alertmanagers []*replica

	killing    sync.Mutex // held by kill, so that a second caller returns only when the processes are dead
	mu         sync.Mutex
	processes  map[string]*Process
	drydocks   map[string][]*Process // by namespace
	proxies    []*Proxy
	broken     map[string]bool // nodes whose kubelet is cut off
	off        map[string]bool // nodes whose machine is down
	conditions map[string]map[corev1.NodeConditionType]corev1.NodeCondition
	voices     map[string]*sync.Mutex // by node; see the method voice
	webhook    WebhookTarget
	ends       []context.CancelFunc // they end the lab's goroutines in this process
	secrets    map[string]string    // the values that WriteSecret wrote, by name
	stopped    bool
}

// Start builds missing programs, starts every part, and returns when all parts and nodes are ready.
// If the context ends at any time, all processes are killed. After an error everything is stopped,
// and the error names the folder with the logs.
func Start(ctx context.Context, o Options) (*Lab, error) {
	// Builds always show their progress, because a build may take twelve minutes, and without
	// output it looks like a hang.
	builds := o.Out
	if builds == nil {
		builds = os.Stderr
	}
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	paths, err := programs.Build(ctx, builds, o.programs()...)
	if err != nil {
		return nil, fmt.Errorf("preparing the lab: %w", err)
	}
	version, err := programs.Version(apiServer())
	if err != nil {
		return nil, fmt.Errorf("preparing the lab: %w", err)
	}
	l := &Lab{
		version:    version,
		options:    o,
		programs:   paths,
		began:      time.Now(),
		webhook:    o.Webhook,
		processes:  map[string]*Process{},
		drydocks:   map[string][]*Process{},
		broken:     map[string]bool{},
		off:        map[string]bool{},
		conditions: map[string]map[corev1.NodeConditionType]corev1.NodeCondition{},
		voices:     map[string]*sync.Mutex{},
	}
	if l.folder, err = openFolder(o.Dir); err != nil {
		return nil, err
	}
	l.release = context.AfterFunc(ctx, l.kill)
	if err := l.start(ctx); err != nil {
		l.Keep()
		l.Stop()
		return nil, fmt.Errorf("starting the lab (logs: %s): %w", l.LogDir(), err)
	}
	return l, nil
}

func (l *Lab) start(ctx context.Context) error {
	if err := l.makeCredentials(); err != nil {
		return err
	}
	// Alertmanager needs no other part, so it starts concurrently with the control plane.
	g, gctx := errgroup.WithContext(ctx)
	if l.options.Alertmanagers > 0 {
		g.Go(func() error { return l.startAlertmanagers(gctx) })
	}
	g.Go(func() error { return l.startControlPlane(gctx) })
	if err := g.Wait(); err != nil {
		return err
	}
	g, gctx = errgroup.WithContext(ctx)
	if l.options.Components == Everything {
		g.Go(func() error { return l.startMonitoring(gctx) })
	}
	if l.options.Components != APIServerOnly {
		g.Go(func() error { return l.startControllers(gctx) })
		if l.options.kubelets() {
			g.Go(l.keepNodes)
		}
		if l.options.kwok() {
			g.Go(func() error { return l.startKWOK(gctx) })
		}
	}
	g.Go(func() error { return l.addFirstNodes(gctx) })
	if err := g.Wait(); err != nil {
		return err
	}
	if l.options.Components != APIServerOnly && len(l.options.NodeSpecs) > 0 {
		if err := l.awaitNodes(ctx); err != nil {
			return err
		}
		l.say("%d nodes ready", len(l.options.NodeSpecs))
	}
	return nil
}

// Stop ends every process and removes the lab's folder, unless the options named it or Keep was
// called.
func (l *Lab) Stop() {
	l.release()
	l.kill()
	l.close()
}

// A clean shutdown is not needed, because no data is kept.
func (l *Lab) kill() {
	l.killing.Lock()
	defer l.killing.Unlock()
	l.mu.Lock()
	l.stopped = true
	processes, proxies, ends := l.processes, l.proxies, l.ends
	l.processes, l.proxies, l.ends = map[string]*Process{}, nil, nil
	l.mu.Unlock()
	for _, end := range ends {
		end()
	}
	var wg sync.WaitGroup
	for _, p := range processes {
		wg.Go(p.Kill)
	}
	for _, p := range proxies {
		p.Close()
	}
	wg.Wait()
}

// ProgramEnv returns the environment for the lab's own programs, but not for Drydock. They collect
// garbage less often: a lab then starts with a quarter less processor time, and kube-apiserver
// takes 200 MB more. In a test each uses only one processor, because waking a second one is a fifth
// of a program's cost.
func ProgramEnv() []string {
	env := []string{"GOGC=400"}
	if testing.Testing() {
		env = append(env, "GOMAXPROCS=1")
	}
	return env
}

func (l *Lab) startPart(ctx context.Context, s Spec) (*Process, error) {
	if s.Path == "" {
		s.Path = l.programs[s.Name]
	}
	if before := l.Process(s.Name); before != nil && !closed(before.Done()) {
		return nil, fmt.Errorf("starting %s: the lab already runs one of this name", s.Name)
	}
	if slices.Contains(slices.Collect(maps.Values(l.programs)), s.Path) {
		s.Env = append(s.Env, ProgramEnv()...)
	}
	s.Log = l.logOf(s.Name)
	p := &Process{spec: s}
	if err := p.launch(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", s.Name, err)
	}
	// From here on the lab owns the process. So the process ends with the lab even if it never
	// becomes ready.
	l.mu.Lock()
	l.processes[s.Name] = p
	stopped := l.stopped
	l.mu.Unlock()
	if stopped {
		p.Kill()
		return nil, fmt.Errorf("starting %s: the lab has been stopped", s.Name)
	}
	if err := p.awaitReady(ctx); err != nil {
		p.Kill()
		return nil, fmt.Errorf("starting %s: %w; %s", s.Name, err, p.LogEnd())
	}
	l.say("%s ready", s.Name)
	return p, nil
}

func (l *Lab) logOf(part string) string { return filepath.Join(l.LogDir(), part+".log") }

func (l *Lab) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.options.Out, "%5.1f s  "+format+"\n", append([]any{time.Since(l.began).Seconds()}, args...)...)
}

// Process returns the process of a part, or nil. The name is that of its program, or alertmanager-0
// and so on. Tests may kill the process and start it again.
func (l *Lab) Process(name string) *Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.processes[name]
}

// Client returns a client with an administrator's rights.
func (l *Lab) Client() kubernetes.Interface { return l.client }

// AdminConfig returns a copy of the administrator's configuration.
func (l *Lab) AdminConfig() *rest.Config { return rest.CopyConfig(l.admin) }

// APIServerURL returns the URL of the API server.
func (l *Lab) APIServerURL() string { return l.api }

// PrometheusURL returns the URL of Prometheus, or "" if there is none.
func (l *Lab) PrometheusURL() string { return l.prometheus }
