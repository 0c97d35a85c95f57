package lab

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// Several nodes are added at the same time, because there may be thousands.
func (l *Lab) addFirstNodes(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, spec := range l.options.NodeSpecs {
		g.Go(func() error { return l.AddNode(ctx, spec) })
	}
	return g.Wait()
}

// AddNode registers a node that is Ready from the start. It is healthy even if an earlier node with
// this name was broken, because it is another machine.
func (l *Lab) AddNode(ctx context.Context, spec NodeSpec) error {
	l.forget(spec.Name)
	node, err := l.kubelet.CoreV1().Nodes().Create(ctx, spec.node(time.Now(), l.version), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("adding node %s: %w", spec.Name, err)
	}
	if l.options.Components != APIServerOnly {
		return nil
	}
	// Admission adds a not-ready taint to every new node. Without the controller that removes it,
	// the taint would stay.
	node.Spec.Taints = spec.Taints
	if _, err := l.kubelet.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("adding node %s: removing its first taint: %w", spec.Name, err)
	}
	return nil
}

func (s NodeSpec) node(now time.Time, version string) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname:   s.Name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}
	if s.Zone != "" {
		labels[corev1.LabelTopologyZone] = s.Zone
	}
	if s.Pool != "" {
		labels["kubernetes.civo.com/civo-node-pool"] = s.Pool
	}
	if s.ControlPlane {
		labels["node-role.kubernetes.io/control-plane"] = ""
	}
	maps.Copy(labels, s.Labels)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	maps.Copy(resources, s.Allocatable)
	providerID, bootID := s.ProviderID, s.BootID
	if providerID == "" {
		providerID = "lab://" + uuid.NewString()
	}
	if bootID == "" {
		bootID = uuid.NewString()
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: s.Name, Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: providerID, Taints: s.Taints},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources,
			Conditions:  Healthy(now, now),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
				{Type: corev1.NodeHostName, Address: s.Name},
			},
			NodeInfo: corev1.NodeSystemInfo{
				BootID: bootID, MachineID: uuid.NewString(), SystemUUID: uuid.NewString(),
				OperatingSystem: "linux", Architecture: "amd64", OSImage: "Drydock lab", KernelVersion: "0.0.0",
				ContainerRuntimeVersion: "kwok://0.0.0", KubeletVersion: version,
			},
		},
	}
}

// Healthy returns the conditions that a kubelet reports now if the node has been healthy since
// then.
func Healthy(now, since time.Time) []corev1.NodeCondition {
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: message,
			LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(since),
		}
	}
	return []corev1.NodeCondition{
		condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
		condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
		condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
		condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
	}
}

// awaitNodes waits until every node is Ready, has lost its not-ready taint, and has a lease.
// Earlier, a guard of Drydock that counts fresh leases would find the cluster in trouble.
func (l *Lab) awaitNodes(ctx context.Context) error {
	missing := ""
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, Patience, true, func(ctx context.Context) (bool, error) {
		nodes, err := l.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		leases, err := l.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err
		}
		settled := map[string]bool{}
		for _, lease := range leases.Items {
			settled[lease.Name] = true
		}
		for _, node := range nodes.Items {
			for _, taint := range node.Spec.Taints {
				if taint.Key == corev1.TaintNodeNotReady {
					settled[node.Name] = false
				}
			}
		}
		for _, spec := range l.options.NodeSpecs {
			if missing = spec.Name; !settled[spec.Name] {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for node %s to have a lease and no not-ready taint: %w", missing, err)
	}
	return nil
}

func (l *Lab) patchStatus(ctx context.Context, node string, patch []byte) error {
	_, err := l.kubelet.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}
