package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
)

// Only Nodes with this label may be disturbed in a person's own cluster.
const (
	DisposableLabel = "drydock-test"
	disposable      = "disposable"
)

// DrainPolicy is the policy of a person's own cluster. It matches no alert, so a person must
// request it.
const DrainPolicy = "cluster-test"

// PrepareOwn builds what tests on a person's own cluster need.
func PrepareOwn(ctx context.Context, out io.Writer) (Built, error) {
	dir, err := programs.Kept("cluster")
	if err != nil {
		return nil, err
	}
	built, err := programs.Build(ctx, out, "helm", "kubectl")
	if err != nil {
		return nil, err
	}
	return built, compile(ctx, dir, built, "./cmd/kubectl-drydock")
}

// Connect installs Drydock in the cluster of the kubeconfig's current context. values is a file
// with values of the chart: at least the image and the addresses of Alertmanager. Drydock observes
// there; only DrainPolicy enforces, on the Nodes with DisposableLabel. Connect changes nothing and
// fails if no Node has that label, or if the cluster has a Drydock already. End uninstalls, and
// deletes the namespace if Connect made it.
func Connect(ctx context.Context, kubeconfig, values string, o Options) (*Cluster, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig %s: %w", kubeconfig, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", config.Host, err)
	}
	c := &Cluster{options: o, client: client, kubeconfig: kubeconfig}
	if c.nodes, c.pauseImage, err = disposableNodes(ctx, client); err != nil {
		return nil, fmt.Errorf("cluster %s: %w; nothing was changed", config.Host, err)
	}
	fmt.Fprintf(o.Out, "cluster %s: the tests may disturb %s\n", config.Host, strings.Join(c.nodes, ", "))
	_, err = client.CoreV1().Namespaces().Get(ctx, Namespace, metav1.GetOptions{})
	if c.madeNamespace = apierrors.IsNotFound(err); err != nil && !c.madeNamespace {
		return nil, fmt.Errorf("reading the namespace %s: %w", Namespace, err)
	}
	if c.dir, err = os.MkdirTemp("", "drydock-cluster-"); err != nil {
		return nil, fmt.Errorf("making a folder: %w", err)
	}
	if err := errors.Join(c.ownValues(values), c.Install(ctx)); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

func disposableNodes(ctx context.Context, client kubernetes.Interface) (names []string, pause string, err error) {
	found, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: DisposableLabel + "=" + disposable})
	if err != nil {
		return nil, "", fmt.Errorf("listing Nodes: %w", err)
	}
	if len(found.Items) == 0 {
		return nil, "", fmt.Errorf("no Node has the label %[1]s=%[2]s. If pods of this cluster may be evicted, and Nodes cordoned: kubectl label node NODE %[1]s=%[2]s", DisposableLabel, disposable)
	}
	others, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=drydock"})
	if err != nil {
		return nil, "", fmt.Errorf("listing Deployments: %w", err)
	}
	if len(others.Items) > 0 {
		return nil, "", fmt.Errorf("it has a Drydock, in namespace %s; the tests install and uninstall one of their own", others.Items[0].Namespace)
	}
	for _, n := range found.Items {
		names = append(names, n.Name)
	}
	if pause = imageOfAll(found.Items); pause == "" {
		return nil, "", fmt.Errorf("the Nodes %s have no pause image in common, which the pods of the tests run", strings.Join(names, ", "))
	}
	return names, pause, nil
}

// imageOfAll returns "" if the Nodes have no such image in common.
func imageOfAll(nodes []corev1.Node) string {
	count := map[string]int{}
	for _, n := range nodes {
		for _, image := range n.Status.Images {
			for _, name := range image.Names {
				if strings.Contains(name, "pause:") {
					count[name]++
				}
			}
		}
	}
	var all []string
	for name, n := range count {
		if n == len(nodes) {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return slices.Min(all)
}

// These values rank above the person's.
func (c *Cluster) ownValues(file string) error {
	text, err := yaml.Marshal(map[string]any{
		"replicaCount": 2,
		"admission":    map[string]any{"webhook": map[string]any{"enabled": true}},
		"config": map[string]any{
			"mode":   "observe",
			"limits": map[string]any{"repairsPerNode": 20},
			"policies": []any{map[string]any{
				"name": DrainPolicy, "mode": "enforce", "target": map[string]any{"node": "node"}, "witness": "none",
				"match":        []string{fmt.Sprintf("remediation=%q", DrainPolicy)},
				"nodeSelector": map[string]any{"matchLabels": map[string]string{DisposableLabel: disposable}},
				"plan":         []any{map[string]any{"step": "drain", "timeout": "10m"}},
				"cooldown":     window, "relapseWindow": window, "proofFor": window,
			}},
		},
	})
	if err != nil {
		return fmt.Errorf("encoding the chart's values: %w", err)
	}
	own := filepath.Join(c.dir, "values.yaml")
	if err := os.WriteFile(own, text, 0o600); err != nil {
		return fmt.Errorf("writing the chart's values: %w", err)
	}
	if file != "" {
		c.values = append(c.values, file)
	}
	c.values = append(c.values, own)
	return nil
}

func (c *Cluster) uninstall(ctx context.Context) error {
	_, err := c.Run(ctx, "helm", "uninstall", Namespace, "--namespace="+Namespace, "--wait", "--ignore-not-found")
	if stopped := c.AwaitStopped(ctx); stopped != nil {
		return errors.Join(err, stopped)
	}
	// After a test that failed, a repair may be in progress. No Drydock continues it here.
	_, cleanup := c.Run(ctx, "kubectl-drydock", "cleanup", "--yes", "--force")
	if !c.madeNamespace {
		// In the next run, an old ledger would stop DrainPolicy, whose repairs all end as Exhausted.
		_, old := c.Run(ctx, "kubectl", "delete", "configmap/drydock-ledger", "lease/drydock", "--namespace="+Namespace, "--ignore-not-found")
		return errors.Join(err, cleanup, old)
	}
	removed := c.client.CoreV1().Namespaces().Delete(ctx, Namespace, metav1.DeleteOptions{})
	if apierrors.IsNotFound(removed) {
		removed = nil
	}
	return errors.Join(err, cleanup, removed)
}

// AwaitStopped waits until Drydock's pods are gone. They outlive the Deployment, which is all that
// helm waits for, and would write again what is removed.
func (c *Cluster) AwaitStopped(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, lab.Patience, true, func(ctx context.Context) (bool, error) {
		pods, err := c.client.CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=drydock"})
		return err == nil && len(pods.Items) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until Drydock's pods are gone: %w", err)
	}
	return nil
}

// End ends a test's use of the cluster. A person's own cluster has no Drydock afterwards.
func (c *Cluster) End() error {
	defer c.Close()
	if c.Hosts != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), lab.Patience)
	defer cancel()
	return c.uninstall(ctx)
}
