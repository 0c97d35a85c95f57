package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
)

// Namespace is Drydock's namespace, and the name of its release.
const Namespace = "drydock"

func root() (string, error) { return programs.ModuleRoot() }

func chartVersion() (string, error) {
	dir, err := root()
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(filepath.Join(dir, "charts", "drydock", "Chart.yaml"))
	if err != nil {
		return "", fmt.Errorf("reading the chart's version: %w", err)
	}
	var chart struct {
		AppVersion string `json:"appVersion"`
	}
	if err := yaml.Unmarshal(text, &chart); err != nil {
		return "", fmt.Errorf("reading the chart's version: %w", err)
	}
	return chart.AppVersion, nil
}

// The cluster has no Prometheus operator, so Prometheus reads the chart's rules from the file.
func (c *Cluster) writeRules() (string, error) {
	custom, err := customRules()
	if err != nil {
		return "", err
	}
	manifests, err := lab.RenderChart(Namespace, Namespace, map[string]any{
		"monitoring":     map[string]any{"operator": true},
		"prometheusRule": map[string]any{"customRules": custom},
	})
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.dir, "rules.yaml")
	if err := os.WriteFile(path, []byte(manifests["drydock/templates/prometheusrule.yaml"]), 0o600); err != nil {
		return "", fmt.Errorf("writing the rules: %w", err)
	}
	return path, nil
}

func scrapeDrydock(kubeconfig string) map[string]any {
	return map[string]any{
		"job_name": "drydock",
		"kubernetes_sd_configs": []any{map[string]any{
			"role": "pod", "kubeconfig_file": kubeconfig, "namespaces": map[string]any{"names": []string{Namespace}},
		}},
		"relabel_configs": []any{map[string]any{
			"source_labels": []string{"__meta_kubernetes_pod_container_port_name"}, "regex": "metrics", "action": "keep",
		}},
	}
}

// Values are the values of Drydock's release, with the times of times.go.
func (c *Cluster) Values() (map[string]any, error) {
	u, err := url.Parse(c.AlertmanagerURLs()[0])
	if err != nil {
		return nil, err
	}
	policies, err := policies()
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"secrets":   map[string]any{"hostsKey": map[string]any{"name": "drydock-hosts"}},
		"admission": map[string]any{"webhook": map[string]any{"enabled": true}},
		"config": map[string]any{
			"mode":         "enforce",
			"alertmanager": map[string]any{"urls": []string{"http://" + c.Hosts.Machine() + ":" + u.Port()}, "pollInterval": "2s", "maxStaleness": "10s"},
			"providers": map[string]any{
				"hosts":      map[string]any{"reboot": true},
				"daemonSets": map[string]any{"kubeProxy": "kube-system/kube-proxy", "cni": "kube-system/kindnet"},
			},
			"limits":   map[string]any{"startupGrace": "30s", "stormCooldown": "30s", "unhealthy": "50%", "repairsPerNode": 20},
			"policies": policies,
		},
	}, nil
}

func (c *Cluster) prepare(ctx context.Context) error {
	_, err := c.Client().CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: Namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making the namespace %s: %w", Namespace, err)
	}
	if _, err := c.Run(ctx, "kubectl", "create", "secret", "generic", "drydock-hosts", "--namespace="+Namespace,
		"--from-file=ssh-privatekey="+c.Hosts.KeyFile(), "--from-file=known_hosts="+c.Hosts.KnownHostsFile()); err != nil {
		return err
	}
	values, err := c.Values()
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(values)
	if err != nil {
		return fmt.Errorf("writing the chart's values: %w", err)
	}
	file := filepath.Join(c.dir, "values.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("writing the chart's values: %w", err)
	}
	c.values = []string{file}
	return nil
}

// Install installs Drydock from this tree's chart and connects the lab's Alertmanager.
func (c *Cluster) Install(ctx context.Context) error {
	began := time.Now()
	chart, err := Chart()
	if err != nil {
		return err
	}
	if err := c.Helm(ctx, "install", chart, "--create-namespace"); err != nil {
		return err
	}
	if err := c.AwaitDrydock(ctx, 2); err != nil {
		return err
	}
	fmt.Fprintf(c.options.Out, "Drydock's pods are Ready %.1f s after helm install\n", time.Since(began).Seconds())
	if c.Lab == nil {
		return nil // the person's values connect it
	}
	return c.connect(ctx)
}

// Chart is the folder of this tree's chart.
func Chart() (string, error) {
	dir, err := root()
	return filepath.Join(dir, "charts", "drydock"), err
}

// PreviousChart returns the folder of the chart of the previous commit. It fails if git has no such
// commit.
func (c *Cluster) PreviousChart(ctx context.Context) (string, error) {
	dir, err := root()
	if err != nil {
		return "", err
	}
	archive := exec.CommandContext(ctx, "git", "-C", dir, "archive", "HEAD~1", "charts/drydock")
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", c.dir)
	if unpack.Stdin, err = archive.StdoutPipe(); err != nil {
		return "", fmt.Errorf("reading the chart of the commit before: %w", err)
	}
	if err := unpack.Start(); err != nil {
		return "", fmt.Errorf("reading the chart of the commit before: %w", err)
	}
	if err := errors.Join(archive.Run(), unpack.Wait()); err != nil {
		return "", fmt.Errorf("reading the chart of the commit before: %w", err)
	}
	return filepath.Join(c.dir, "charts", "drydock"), nil
}

// Helm installs or upgrades the release from a chart, with the cluster's values and further
// arguments.
func (c *Cluster) Helm(ctx context.Context, verb, chart string, further ...string) error {
	args := []string{verb, Namespace, chart, "--namespace=" + Namespace}
	for _, file := range c.values {
		args = append(args, "--values="+file)
	}
	_, err := c.Run(ctx, "helm", append(args, further...)...)
	return err
}

// AwaitDrydock returns when so many of Drydock's pods are Ready.
func (c *Cluster) AwaitDrydock(ctx context.Context, pods int32) error {
	last := errors.New("nothing asked yet")
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, lab.Patience, true, func(ctx context.Context) (bool, error) {
		d, err := c.Client().AppsV1().Deployments(Namespace).Get(ctx, Namespace, metav1.GetOptions{})
		if last = err; err == nil {
			last = fmt.Errorf("%d pods are Ready", d.Status.ReadyReplicas)
		}
		return err == nil && d.Status.ReadyReplicas == pods && d.Status.ObservedGeneration == d.Generation, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %d Ready pods of Drydock: %w (%w)", pods, err, last)
	}
	return nil
}

// Alertmanager gets the shipped routes with shorter times, and Drydock's address and token.
func (c *Cluster) connect(ctx context.Context) error {
	service, err := c.Client().CoreV1().Services(Namespace).Get(ctx, Namespace, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Drydock's Service: %w", err)
	}
	secret, err := c.Client().CoreV1().Secrets(Namespace).Get(ctx, Namespace+"-token", metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading Drydock's token: %w", err)
	}
	token, err := c.WriteSecret("receiver-token", string(secret.Data["token"]))
	if err != nil {
		return err
	}
	dir, err := root()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "deploy", "alertmanager.yaml"))
	if err != nil {
		return fmt.Errorf("reading the shipped routes: %w", err)
	}
	text = []byte(strings.NewReplacer(
		"group_interval: 1m", "group_interval: 5s",
		"http://drydock.drydock:9095", "http://"+service.Spec.ClusterIP+":9095",
		"/etc/alertmanager/secrets/drydock-token", token,
	).Replace(string(text)))
	var config map[string]any
	if err := yaml.Unmarshal(text, &config); err != nil {
		return fmt.Errorf("reading the shipped routes: %w", err)
	}
	return c.SetWebhook(ctx, lab.WebhookTarget{Config: config})
}
