package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
	"drydock.dev/drydock/rules"
)

// Namespace is Drydock's namespace, and the name of its release.
const Namespace = "drydock"

// Faster divides the times of the shipped rules.
const Faster = 12

// shortLooks divides the lookbacks of the rules about nodes, which are 3m, and the age of 600
// seconds that a node must have.
var shortLooks = strings.NewReplacer(
	"[3m]", fmt.Sprintf("[%ds]", 180/Faster), "offset 3m", fmt.Sprintf("offset %ds", 180/Faster), "< 600", fmt.Sprintf("< %d", 600/Faster),
)

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

// customRules are the chart's values for the shipped alerts that policies take, with shorter times.
func customRules() (map[string]any, error) {
	names, err := rules.Names()
	if err != nil {
		return nil, err
	}
	custom := map[string]any{}
	for _, name := range names {
		text, err := rules.Read(name)
		if err != nil {
			return nil, err
		}
		var file struct {
			Groups []struct {
				Rules []struct {
					Alert, Expr, For string
					KeepFiringFor    string `json:"keep_firing_for"`
					Labels           map[string]string
				}
			}
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			return nil, fmt.Errorf("reading the rule %s: %w", name, err)
		}
		for _, group := range file.Groups {
			for _, r := range group.Rules {
				if !strings.HasPrefix(r.Labels["remediation"], "node-") {
					continue
				}
				values := map[string]any{"expr": shortLooks.Replace(r.Expr)}
				for key, shipped := range map[string]string{"for": r.For, "keepFiringFor": r.KeepFiringFor} {
					if shipped == "" {
						continue
					}
					d, err := time.ParseDuration(shipped)
					if err != nil {
						return nil, fmt.Errorf("reading the rule %s: %w", name, err)
					}
					values[key] = fmt.Sprintf("%dms", (d / Faster).Milliseconds())
				}
				custom[r.Alert] = values
			}
		}
	}
	return custom, nil
}

// writeRules writes the rules that the chart makes for a Prometheus operator. The cluster has no
// operator, so Prometheus reads them from the file.
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

// scrapeDrydock is the job of Prometheus for Drydock's pods.
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

// Values are the values of Drydock's release. Its times are short where the rules' are, and a
// step's wait fits these hosts.
func (c *Cluster) Values() (map[string]any, error) {
	u, err := url.Parse(c.AlertmanagerURLs()[0])
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"secrets":   map[string]any{"hostsKey": map[string]any{"name": "drydock-hosts"}},
		"admission": map[string]any{"webhook": map[string]any{"enabled": true}},
		"config": map[string]any{
			"mode":         "enforce",
			"alertmanager": map[string]any{"urls": []string{"http://" + c.Hosts.Machine() + ":" + u.Port()}, "pollInterval": "2s", "maxStaleness": "10s"},
			"providers":    map[string]any{"hosts": map[string]any{"reboot": true}},
			"limits":       map[string]any{"startupGrace": "30s", "stormCooldown": "30s", "unhealthy": "50%", "repairsPerNode": 20},
			"policies": []any{map[string]any{
				"name": "node-not-ready", "for": "5s", "proofFor": "5s", "cooldown": "10s", "relapseWindow": "10s",
				"plan": []any{
					map[string]any{"step": "restart-kubelet", "wait": "1m"},
					map[string]any{"step": "reboot", "wait": "3m", "attempts": 2},
				},
			}, map[string]any{
				"name": "node-disk-pressure", "for": "5s", "proofFor": "5s", "cooldown": "10s", "relapseWindow": "10s",
				"plan": []any{
					map[string]any{"step": "drain", "timeout": "2m", "onTimeout": "continue"},
					map[string]any{"step": "reboot", "wait": "5m"},
				},
			}},
		},
	}, nil
}

// install installs Drydock from its chart, as a person would, in a namespace that enforces Pod
// Security, and connects Alertmanager.
func (c *Cluster) install(ctx context.Context) error {
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
	c.values = filepath.Join(c.dir, "values.yaml")
	if err := os.WriteFile(c.values, text, 0o600); err != nil {
		return fmt.Errorf("writing the chart's values: %w", err)
	}
	dir, err := root()
	if err != nil {
		return err
	}
	began := time.Now()
	if _, err := c.Run(ctx, "helm", "install", Namespace, filepath.Join(dir, "charts", "drydock"), "--namespace="+Namespace, "--values="+c.values); err != nil {
		return err
	}
	if err := c.AwaitDrydock(ctx, 2); err != nil {
		return err
	}
	fmt.Fprintf(c.options.Out, "Drydock's pods are Ready %.1f s after helm install\n", time.Since(began).Seconds())
	return c.connect(ctx)
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

// connect gives Alertmanager the shipped routes to Drydock, with shorter times, and Drydock's
// address and token.
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
