package lab

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/internal/lab/programs"
)

// Karpenter's test provider needs these rights to create and delete Nodes. Its chart does not give
// them.
const karpenterRights = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: karpenter}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}
subjects: [{kind: ServiceAccount, name: karpenter, namespace: karpenter}]
`

const karpenterGroup = "karpenter.sh"

// NodePoolLabel is the label of NodeClaims and Nodes with the name of their NodePool.
const NodePoolLabel = karpenterGroup + "/nodepool"

var (
	NodeClaims = schema.GroupVersionResource{Group: karpenterGroup, Version: "v1", Resource: "nodeclaims"}
	NodePools  = schema.GroupVersionResource{Group: karpenterGroup, Version: "v1", Resource: "nodepools"}
)

var allKarpenterKinds = map[string][]string{"karpenter": {
	"kwok/charts/crds/karpenter.sh_nodeclaims.yaml",
	"kwok/charts/crds/karpenter.sh_nodeoverlays.yaml",
	"kwok/charts/crds/karpenter.sh_nodepools.yaml",
	"kwok/apis/crds/karpenter.kwok.sh_kwoknodeclasses.yaml",
}}

// Karpenter runs the released Karpenter with its test provider, whose instances are only Node
// objects. The lab is their kubelet. Karpenter's own node repair is on.
type Karpenter struct {
	Dynamic dynamic.Interface
	Proxy   *Proxy

	lab *Lab
}

// StartKarpenter starts Karpenter without a NodePool. The first call builds it.
func (l *Lab) StartKarpenter(ctx context.Context) (*Karpenter, error) {
	paths, err := programs.Build(ctx, os.Stderr, "karpenter")
	if err != nil {
		return nil, err
	}
	k := &Karpenter{lab: l}
	if k.Dynamic, err = dynamic.NewForConfig(l.AdminConfig()); err != nil {
		return nil, err
	}
	if err := l.addKinds(ctx, allKarpenterKinds); err != nil {
		return nil, err
	}
	if err := l.Apply(ctx, []byte("apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\nmetadata: {name: default}\n")); err != nil {
		return nil, err
	}
	if k.Proxy, err = l.NewProxy(); err != nil {
		return nil, err
	}
	kubeconfig, err := l.ServiceAccountKubeconfig(ctx, "karpenter", "karpenter", k.Proxy.URL())
	if err != nil {
		return nil, err
	}
	if err := l.Apply(ctx, []byte(karpenterRights)); err != nil {
		return nil, err
	}
	k.boot()
	_, _, err = l.startOnPorts(ctx, 2, func(ports []int) Spec {
		return Spec{
			Name: "karpenter", Path: paths["karpenter"], ReadyURL: "http://" + address(ports[0]) + "/readyz",
			Env: []string{
				"KUBECONFIG=" + kubeconfig, fmt.Sprintf("HEALTH_PROBE_PORT=%d", ports[0]), fmt.Sprintf("METRICS_PORT=%d", ports[1]),
				"DISABLE_LEADER_ELECTION=true", "SYSTEM_NAMESPACE=karpenter", "FEATURE_GATES=StaticCapacity=true,NodeRepair=true",
			},
		}
	})
	return k, err
}

func (k *Karpenter) boot() {
	ctx, cancel := context.WithCancel(context.Background())
	k.lab.mu.Lock()
	k.lab.ends = append(k.lab.ends, cancel)
	k.lab.mu.Unlock()
	// After an error, the next event tries again. The resync period causes one every second.
	factory := informers.NewSharedInformerFactoryWithOptions(k.lab.client, time.Second, informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = NodePoolLabel }))
	settle := func(o any) {
		n, ok := o.(*corev1.Node)
		if !ok || len(n.Status.Conditions) > 0 {
			return
		}
		now := time.Now()
		if err := k.lab.post(ctx, n.Name, Healthy(now, now), uuid.NewString()); err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) {
			k.lab.say("Node %s: %v", n.Name, err)
		}
	}
	_, _ = factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: settle, UpdateFunc: func(_, o any) { settle(o) }}) // the only error is that the informer has stopped
	factory.Start(ctx.Done())
}

// AddNodePool creates a NodePool with a fixed number of Nodes, and returns their names when all are
// Initialized. With 0, Karpenter creates Nodes when pods need them.
func (k *Karpenter) AddNodePool(ctx context.Context, name string, replicas int) ([]string, error) {
	spec := map[string]any{
		"template": map[string]any{"spec": map[string]any{
			"nodeClassRef": map[string]any{"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
			"requirements": []any{map[string]any{"key": corev1.LabelInstanceTypeStable, "operator": "In", "values": []any{"c-2x-amd64-linux"}}},
			"expireAfter":  "Never",
		}},
		"disruption": map[string]any{"consolidateAfter": "Never", "budgets": []any{map[string]any{"nodes": "100%"}}},
	}
	if replicas > 0 {
		spec["replicas"] = int64(replicas)
	}
	_, err := k.Dynamic.Resource(NodePools).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": karpenterGroup + "/v1", "kind": "NodePool", "metadata": map[string]any{"name": name}, "spec": spec,
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("adding NodePool %s: %w", name, err)
	}
	return k.AwaitNodes(ctx, name, replicas)
}

// AwaitNodes waits until the NodePool has this many Nodes with Initialized NodeClaims, and returns
// the Nodes' names.
func (k *Karpenter) AwaitNodes(ctx context.Context, pool string, count int) (names []string, err error) {
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, Patience, true, func(ctx context.Context) (bool, error) {
		all, err := k.Dynamic.Resource(NodeClaims).List(ctx, metav1.ListOptions{LabelSelector: NodePoolLabel + "=" + pool})
		if err != nil {
			return false, err
		}
		names = nil
		for i := range all.Items {
			node, _, _ := unstructured.NestedString(all.Items[i].Object, "status", "nodeName")
			conditions, _, _ := unstructured.NestedSlice(all.Items[i].Object, "status", "conditions")
			for _, c := range conditions {
				if said := c.(map[string]any); said["type"] == "Initialized" && said["status"] == "True" {
					names = append(names, node)
				}
			}
		}
		return len(names) == count, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the Nodes of NodePool %s: it has %s, not %d: %w", pool, strings.Join(names, ", "), count, err)
	}
	return names, nil
}
