package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"drydock.dev/drydock/internal/lab"
)

// A node as it is in real clusters.
const (
	imagesPerNode      = 50
	labelsPerNode      = 20
	annotationsPerNode = 12
	nodeBytes          = 12 << 10 // the least size, in JSON
	// How often a kubelet writes its node's status. Only one node in heartbeatShare does so here.
	// The lab renews the leases.
	heartbeat      = 10 * time.Second
	heartbeatShare = 10
	// The number of concurrent requests. With more, this API server only answers each request
	// later.
	workersAtOnce = 16
)

// The nodes, with what their kubelets would do and KWOK does not.
type fleet struct {
	client kubernetes.Interface
	size   int
	// The retries of adding a node. Only the preparation is repeated, never what is measured.
	again wait.Backoff
	bytes int
	beats atomic.Int64
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i) }

func newFleet(ctx context.Context, config *rest.Config, size int) (*fleet, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the kubelets' client: %w", err)
	}
	f := &fleet{client: client, size: size, again: wait.Backoff{Steps: 6, Duration: time.Second, Factor: 2, Jitter: 0.5}}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(workersAtOnce)
	for i := range size {
		g.Go(func() error { return f.add(gctx, i) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	if err := f.await(ctx); err != nil {
		return nil, err
	}
	n, err := client.CoreV1().Nodes().Get(ctx, nodeName(0), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("weighing a node: %w", err)
	}
	text, err := json.Marshal(n)
	if err != nil {
		return nil, fmt.Errorf("weighing a node: %w", err)
	}
	if f.bytes = len(text); f.bytes < nodeBytes {
		return nil, fmt.Errorf("a node takes only %d bytes of JSON, and should be as heavy as a real one: %d", f.bytes, nodeBytes)
	}
	return f, nil
}

// mayPass reports that the next attempt may succeed: etcd did not answer in time, or the API server
// is overloaded.
func mayPass(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err)
}

// It tries again while etcd is too slow.
func (f *fleet) add(ctx context.Context, i int) error {
	return retry.OnError(f.again, mayPass, func() error { return f.register(ctx, i) })
}

// The node is also written by other clients, so that its managed fields are like real ones. A node
// that exists already stays.
func (f *fleet) register(ctx context.Context, i int) error {
	nodes := f.client.CoreV1().Nodes()
	n := heavyNode(i)
	if _, err := nodes.Create(ctx, n, metav1.CreateOptions{FieldManager: "kubelet"}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("adding node %s: %w", n.Name, err)
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": n.Status.Conditions, "images": n.Status.Images}})
	if err != nil {
		return fmt.Errorf("adding node %s: %w", n.Name, err)
	}
	if _, err := nodes.Patch(ctx, n.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{FieldManager: "kubelet"}, "status"); err != nil {
		return fmt.Errorf("adding node %s: its status: %w", n.Name, err)
	}
	annotations := map[string]string{}
	for k := range annotationsPerNode {
		annotations[fmt.Sprintf("network.example.com/setting-%d", k)] = fmt.Sprintf("10.%d.%d.%d/24,mtu=1450,mode=native", i/250, i%250, k)
	}
	if patch, err = json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}}); err != nil {
		return fmt.Errorf("adding node %s: %w", n.Name, err)
	}
	if _, err := nodes.Patch(ctx, n.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "cni"}); err != nil {
		return fmt.Errorf("adding node %s: its annotations: %w", n.Name, err)
	}
	return nil
}

func heavyNode(i int) *corev1.Node {
	labels := map[string]string{
		corev1.LabelHostname: nodeName(i), corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
		corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3), "kubernetes.civo.com/civo-node-pool": fmt.Sprintf("pool-%d", i%5),
	}
	for k := len(labels); k < labelsPerNode; k++ {
		labels[fmt.Sprintf("feature.example.com/cpu-%d", k)] = "true"
	}
	images := make([]corev1.ContainerImage, imagesPerNode)
	for k := range images {
		images[k] = corev1.ContainerImage{
			Names: []string{
				fmt.Sprintf("registry.example.com/team-%d/service-%d@sha256:%064x", k%7, k, k),
				fmt.Sprintf("registry.example.com/team-%d/service-%d:v1.%d.0", k%7, k, k),
			},
			SizeBytes: int64(1<<26 + k),
		}
	}
	resources := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("8"), corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), Labels: labels},
		Spec:       corev1.NodeSpec{ProviderID: "civo://" + uuid.NewString()},
		Status: corev1.NodeStatus{
			Capacity: resources, Allocatable: resources, Images: images, Conditions: lab.Healthy(time.Now(), since),
			Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}, {Type: corev1.NodeHostName, Address: nodeName(i)}},
			NodeInfo: corev1.NodeSystemInfo{
				BootID: uuid.NewString(), MachineID: uuid.NewString(), SystemUUID: uuid.NewString(), OperatingSystem: "linux", Architecture: "amd64",
				OSImage: "Drydock bench", KernelVersion: "0.0.0", ContainerRuntimeVersion: "kwok://0.0.0", KubeletVersion: "v0.0.0",
			},
		},
	}
}

var since = time.Now().Add(-time.Hour).Truncate(time.Second)

// await waits until every node has lost its first taint and has a lease, however long etcd takes.
func (f *fleet) await(ctx context.Context) error {
	left, passing := f.size, error(nil)
	err := wait.PollUntilContextTimeout(ctx, f.again.Duration, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		if left, err = f.unfinished(ctx); mayPass(err) {
			passing = err
			return false, nil
		}
		return left == 0, err
	})
	if err != nil {
		return fmt.Errorf("waiting for the nodes to have leases and no taints (%d are missing): %w", left, errors.Join(err, passing))
	}
	return nil
}

func (f *fleet) unfinished(ctx context.Context) (int, error) {
	leases, err := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return f.size, err
	}
	nodes, err := f.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return f.size, err
	}
	left := max(0, f.size-len(leases.Items))
	for i := range nodes.Items {
		left += len(nodes.Items[i].Spec.Taints)
	}
	return left, nil
}

// beat writes the status of one node in ten every 10 s, evenly distributed over that time, until
// ctx ends.
func (f *fleet) beat(ctx context.Context) {
	beating := max(f.size/heartbeatShare, 1)
	ticker := time.NewTicker(heartbeat / time.Duration(beating))
	defer ticker.Stop()
	var writers errgroup.Group
	writers.SetLimit(8)
	for i := 0; ; i = (i + 1) % beating {
		select {
		case <-ctx.Done():
			_ = writers.Wait()
			return
		case <-ticker.C:
		}
		writers.TryGo(func() error {
			now := metav1.Now()
			beats := make([]map[string]any, 0, 4)
			for _, c := range lab.Healthy(now.Time, since) {
				beats = append(beats, map[string]any{"type": c.Type, "lastHeartbeatTime": now})
			}
			patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": beats}})
			if err != nil {
				return err
			}
			err = f.client.CoreV1().RESTClient().Patch(types.StrategicMergePatchType).Resource("nodes").Name(nodeName(i*heartbeatShare)).SubResource("status").
				VersionedParams(&metav1.PatchOptions{FieldManager: "kubelet"}, metav1.ParameterCodec).Body(patch).Do(ctx).Error()
			if err == nil {
				f.beats.Add(1)
			}
			return err
		})
	}
}

// patch is the plain PATCH that other figures are compared with: one annotation on one node,
// without decoding the answer.
func (f *fleet) patch(ctx context.Context, node, key string, value any) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: value}}})
	if err != nil {
		return err
	}
	return f.client.CoreV1().RESTClient().Patch(types.MergePatchType).Resource("nodes").Name(node).Body(body).Do(ctx).Error()
}

func (f *fleet) everywhere(ctx context.Context, n, workers int, do func(ctx context.Context, node string) error) (each []time.Duration, all time.Duration, err error) {
	each = make([]time.Duration, n)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(workers)
	began := time.Now()
	for i := range n {
		g.Go(func() error {
			began := time.Now()
			err := do(gctx, nodeName(i))
			each[i] = time.Since(began)
			return err
		})
	}
	err = g.Wait()
	return each, time.Since(began), err
}
