package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab/programs"
)

var operatorKinds = map[string][]string{
	"prometheus-operator": {
		"example/prometheus-operator-crd/monitoring.coreos.com_alertmanagerconfigs.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_podmonitors.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_scrapeconfigs.yaml",
		"example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
	},
	"cert-manager": {"deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_issuers.yaml"},
}

var clusterAPIKinds = map[string][]string{"cluster-api": {
	"core/config/crd/bases/cluster.x-k8s.io_clusters.yaml",
	"core/config/crd/bases/cluster.x-k8s.io_machinedeployments.yaml",
	"core/config/crd/bases/cluster.x-k8s.io_machinehealthchecks.yaml",
	"core/config/crd/bases/cluster.x-k8s.io_machines.yaml",
	"core/config/crd/bases/cluster.x-k8s.io_machinesets.yaml",
}}

var karpenterKinds = map[string][]string{"karpenter": {"kwok/charts/crds/karpenter.sh_nodeclaims.yaml", "kwok/charts/crds/karpenter.sh_nodepools.yaml"}}

// AddOperatorKinds applies the CustomResourceDefinitions of the Prometheus operator and of
// cert-manager, without their operators.
func (l *Lab) AddOperatorKinds(ctx context.Context) error { return l.addKinds(ctx, operatorKinds) }

// AddClusterAPIKinds applies Cluster API's CustomResourceDefinitions, without its controllers.
func (l *Lab) AddClusterAPIKinds(ctx context.Context) error { return l.addKinds(ctx, clusterAPIKinds) }

// AddKarpenterKinds applies Karpenter's CustomResourceDefinitions, without Karpenter.
func (l *Lab) AddKarpenterKinds(ctx context.Context) error { return l.addKinds(ctx, karpenterKinds) }

func (l *Lab) addKinds(ctx context.Context, kinds map[string][]string) error {
	for tool, files := range kinds {
		dir, err := moduleOf(ctx, tool)
		if err != nil {
			return err
		}
		for _, file := range files {
			text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(file)))
			if err != nil {
				return fmt.Errorf("reading a kind of %s: %w", tool, err)
			}
			if err := l.addKind(ctx, text); err != nil {
				return fmt.Errorf("adding the kind of %s: %w", file, err)
			}
		}
	}
	return nil
}

func (l *Lab) addKind(ctx context.Context, text []byte) error {
	if err := l.Apply(ctx, text); err != nil {
		return err
	}
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Plural string }
			Versions []struct{ Name string }
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		return err
	}
	return l.awaitKind(ctx, schema.GroupVersionResource{Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Resource: crd.Spec.Names.Plural})
}

// It polls, because discovery cannot be watched.
func (l *Lab) awaitKind(ctx context.Context, resource schema.GroupVersionResource) error {
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, Patience, true, func(context.Context) (bool, error) {
		list, err := l.client.Discovery().ServerResourcesForGroupVersion(resource.GroupVersion().String())
		if err != nil {
			return false, nil //nolint:nilerr // the kind is not served yet
		}
		return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource.Resource }), nil
	})
	if err != nil {
		return fmt.Errorf("waiting for %s to be served: %w", resource.Resource, err)
	}
	return nil
}

// The module that tools/TOOL pins is downloaded if it is not there.
func moduleOf(ctx context.Context, tool string) (string, error) {
	root, err := programs.ModuleRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "tools", tool)
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("reading the pin of %s: %w", tool, err)
	}
	_, required, found := strings.Cut(string(mod), "\nrequire ")
	if !found {
		return "", fmt.Errorf("reading the pin of %s: its go.mod requires nothing", tool)
	}
	path := strings.Fields(required)[0]
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", path)
	download.Dir = dir
	download.Env = programs.GoEnv("")
	out, err := download.Output()
	if err != nil {
		return "", fmt.Errorf("downloading %s: %w", path, err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return "", fmt.Errorf("downloading %s: %w", path, err)
	}
	return module.Dir, nil
}
