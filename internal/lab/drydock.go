package lab

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab/programs"
)

// Namespace is the default namespace of Drydock's own objects in a lab.
const Namespace = "drydock"

// DrydockOptions configure how the lab runs Drydock.
type DrydockOptions struct {
	// Name distinguishes replicas and their logs. The default is drydock.
	Name string
	// Namespace has the replica's ledger, Lease and ServiceAccount. It is also the name of the
	// chart's release. The default is the constant Namespace.
	Namespace string
	// Config is merged over the lab's own configuration, key by key.
	Config map[string]any
	// Civo is the simulated provider. Nil means that Drydock has no provider Civo.
	Civo *Civo
	// Server is the URL of a Proxy. Empty means the API server itself.
	Server string
	// Port is the receiver's port. 0 means a free port.
	Port int
	// Program is the path of another build of Drydock. Empty means that of PrepareDrydock.
	Program string
	// Admission makes Drydock serve the admission webhook. The chart must have been installed with
	// its Values. Nil means no webhook.
	Admission *Admission
}

// Drydock is a running Drydock: a process that uses the chart's ServiceAccount.
type Drydock struct {
	*Process
	ReceiverURL, MetricsURL string
	TokenFile, ConfigFile   string

	namespace string
}

// PrepareDrydock builds Drydock, installs the chart without the admission webhook, and creates the
// token that the receiver requires.
func (l *Lab) PrepareDrydock(ctx context.Context) (tokenFile string, err error) {
	return l.PrepareDrydockWith(ctx, nil)
}

// PrepareDrydockWith is PrepareDrydock with additional values for the chart.
func (l *Lab) PrepareDrydockWith(ctx context.Context, values map[string]any) (tokenFile string, err error) {
	if err := programs.Compile(ctx, l.DrydockProgram(), "./cmd/drydock"); err != nil {
		return "", err
	}
	return l.InstallDrydock(ctx, values)
}

// InstallDrydock is PrepareDrydockWith, but does not build the program.
func (l *Lab) InstallDrydock(ctx context.Context, values map[string]any) (tokenFile string, err error) {
	if err := l.InstallChart(ctx, "drydock", Namespace, values); err != nil {
		return "", err
	}
	return l.WriteSecret("receiver-token", "token-"+rand.Text())
}

// DrydockProgram returns the path of the program that PrepareDrydock builds.
func (l *Lab) DrydockProgram() string { return filepath.Join(l.dir, "bin", "drydock") }

// All times are short, except two: leader election and the answer to a call. A busy machine must
// not exceed these.
func (l *Lab) drydockConfig(o DrydockOptions, tokenFile string, ports []int) map[string]any {
	c := map[string]any{
		"apiVersion": "drydock.dev/v1alpha1", "kind": "Config", "mode": "enforce",
		"receiver": map[string]any{"listen": address(ports[0]), "tokenFile": tokenFile},
		"metrics":  map[string]any{"listen": address(ports[1])},
		"health":   map[string]any{"listen": address(ports[2])},
		"alertmanager": map[string]any{
			"urls": l.AlertmanagerURLs(), "pollInterval": "2s", "maxStaleness": "10s",
		},
		"leaderElection": map[string]any{
			"namespace": o.Namespace, "leaseDuration": "60s", "renewDeadline": "50s", "retryPeriod": "500ms", "cluster": clusterLease(o.Namespace),
		},
		"ledger": map[string]any{"namespace": o.Namespace},
		"limits": map[string]any{"startupGrace": "0s"},
	}
	if !l.loadsSelfTest() {
		c["alertmanager"].(map[string]any)["selfTest"] = ""
	}
	if o.Civo != nil {
		c["providers"] = map[string]any{"civo": map[string]any{
			"apiURL": o.Civo.URL(), "clusterID": o.Civo.ClusterID, "region": o.Civo.Region, "apiKeyFile": o.Civo.KeyFile, "timeout": "20s",
		}}
	}
	return overlay(c, o.Config)
}

func (l *Lab) loadsSelfTest() bool {
	return slices.ContainsFunc(l.options.RuleFiles, func(file string) bool { return filepath.Base(file) == "DrydockSelfTest.yaml" })
}

// Maps are merged key by key. b wins.
func overlay(a, b map[string]any) map[string]any {
	for k, v := range b {
		if old, ok := a[k].(map[string]any); ok {
			if further, ok := v.(map[string]any); ok {
				a[k] = overlay(old, further)
				continue
			}
		}
		a[k] = v
	}
	return a
}

// StartDrydock starts Drydock and returns when it is ready. Call PrepareDrydock before the first
// start.
func (l *Lab) StartDrydock(ctx context.Context, tokenFile string, o DrydockOptions) (*Drydock, error) {
	if o.Name == "" {
		o.Name = "drydock"
	}
	if o.Namespace == "" {
		o.Namespace = Namespace
	}
	kubeconfig, err := l.ServiceAccountKubeconfig(ctx, o.Namespace, o.Namespace, o.Server)
	if err != nil {
		return nil, err
	}
	if o.Admission != nil {
		certDir := filepath.Join(l.dir, o.Name+"-certs")
		if err := l.Project(ctx, o.Namespace, o.Namespace+"-webhook", certDir); err != nil {
			return nil, err
		}
		o.Config = overlay(map[string]any{"webhook": o.Admission.config(o.Namespace, certDir)}, o.Config)
	}
	file := filepath.Join(l.dir, o.Name+".yaml")
	if err := l.freeLead(ctx, o.Namespace); err != nil {
		return nil, err
	}
	var written error
	p, ports, err := l.startOnPorts(ctx, 3, func(ports []int) Spec {
		ports[0] = cmp.Or(o.Port, ports[0])
		text, err := yaml.Marshal(l.drydockConfig(o, tokenFile, ports))
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		written = err
		return Spec{
			Name: o.Name, Path: cmp.Or(o.Program, l.DrydockProgram()), Args: []string{"run", "--config", file, "--kubeconfig", kubeconfig},
			ReadyURL: "http://" + address(ports[2]) + "/readyz", // /readyz also waits for the API server
		}
	})
	if err = errors.Join(written, err); err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.drydocks[o.Namespace] = append(l.drydocks[o.Namespace], p)
	l.mu.Unlock()
	return &Drydock{
		Process: p, TokenFile: tokenFile, ConfigFile: file, namespace: o.Namespace,
		ReceiverURL: "http://" + address(ports[0]) + "/v1/alerts", MetricsURL: "http://" + address(ports[1]) + "/metrics",
	}, nil
}

// Restart starts a Drydock again whose process has ended, and returns when it is ready.
func (l *Lab) Restart(ctx context.Context, d *Drydock) error {
	if err := l.freeLead(ctx, d.namespace); err != nil {
		return err
	}
	return d.Start(ctx)
}

// The next leader would wait until the Lease of an ended Drydock expires. A Lease that a test gave
// to another holder stays.
func (l *Lab) freeLead(ctx context.Context, namespace string) error {
	l.mu.Lock()
	ran := l.drydocks[namespace]
	l.mu.Unlock()
	if len(ran) == 0 || slices.ContainsFunc(ran, func(p *Process) bool { return !closed(p.Done()) }) {
		return nil
	}
	host, err := os.Hostname() // the identity of a leader begins with the host name
	if err != nil {
		return fmt.Errorf("finding the Lease of a leader that has ended: %w", err)
	}
	leases := l.client.CoordinationV1().Leases(namespace)
	lease, err := leases.Get(ctx, "drydock", metav1.GetOptions{})
	if err == nil && strings.HasPrefix(ptr.Deref(lease.Spec.HolderIdentity, ""), host+"_") {
		err = leases.Delete(ctx, "drydock", metav1.DeleteOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting the Lease of a leader that has ended: %w", err)
	}
	return nil
}
