package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab/programs"
)

const (
	ClusterAPINamespace = "capi"
	ClusterAPICluster   = "lab"
	// ClusterAPIUser is the user that Cluster API uses to change Nodes. The kubeadm control plane
	// writes the same user into its kubeconfig.
	ClusterAPIUser = "kubernetes-admin"
)

const (
	capiGroup  = "cluster.x-k8s.io"
	infraGroup = "infrastructure." + capiGroup
	planeGroup = "controlplane." + capiGroup
	// On a LabMachine while its Node's machine exists.
	labFinalizer = "drydock.dev/lab-machine"
)

// CAPIMachines is the resource of Cluster API's Machines, labMachines that of the machines behind
// them.
var (
	CAPIMachines = schema.GroupVersionResource{Group: capiGroup, Version: "v1beta2", Resource: "machines"}
	labMachines  = schema.GroupVersionResource{Group: infraGroup, Version: "v1beta1", Resource: "labmachines"}
)

// ClusterAPI runs the released core controllers of Cluster API. The lab is their infrastructure
// provider: each LabMachine is a Node with a simulated kubelet.
type ClusterAPI struct {
	Dynamic dynamic.Interface

	lab *Lab
}

// StartClusterAPI starts the controllers and creates the lab's Cluster without Machines. The first
// call builds the controllers.
func (l *Lab) StartClusterAPI(ctx context.Context) (*ClusterAPI, error) {
	paths, err := programs.Build(ctx, os.Stderr, "cluster-api")
	if err != nil {
		return nil, err
	}
	c := &ClusterAPI{lab: l}
	if c.Dynamic, err = dynamic.NewForConfig(l.AdminConfig()); err != nil {
		return nil, err
	}
	if err := c.addAllKinds(ctx); err != nil {
		return nil, err
	}
	if err := c.run(ctx, paths["cluster-api"]); err != nil {
		return nil, err
	}
	kubeconfig, err := c.kubeconfig()
	if err != nil {
		return nil, err
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: ClusterAPICluster + "-kubeconfig", Labels: map[string]string{capiGroup + "/cluster-name": ClusterAPICluster}},
		Type:       capiGroup + "/secret", Data: map[string][]byte{"value": kubeconfig},
	}
	if _, err := l.client.CoreV1().Secrets(ClusterAPINamespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("adding the kubeconfig for Cluster API: %w", err)
	}
	for _, o := range []labObject{
		{infraGroup, "v1beta1", "LabCluster", ClusterAPICluster, nil, map[string]any{"initialization": map[string]any{"provisioned": true}}},
		{infraGroup, "v1beta1", "LabMachineTemplate", "workers", map[string]any{"template": map[string]any{"spec": map[string]any{}}}, nil},
		{planeGroup, "v1beta1", "LabControlPlane", ClusterAPICluster, map[string]any{"version": l.version}, map[string]any{
			"initialization": map[string]any{"controlPlaneInitialized": true}, "externalManagedControlPlane": true, "version": l.version,
		}},
		{capiGroup, "v1beta2", "Cluster", ClusterAPICluster, map[string]any{
			"controlPlaneEndpoint": map[string]any{"host": "127.0.0.1", "port": 6443},
			"infrastructureRef":    map[string]any{"apiGroup": infraGroup, "kind": "LabCluster", "name": ClusterAPICluster},
			"controlPlaneRef":      map[string]any{"apiGroup": planeGroup, "kind": "LabControlPlane", "name": ClusterAPICluster},
		}, nil},
	} {
		if err := c.create(ctx, o); err != nil {
			return nil, err
		}
	}
	return c, c.provide()
}

func (c *ClusterAPI) kubeconfig() ([]byte, error) {
	config, err := c.lab.userConfig(ClusterAPIUser, "system:masters")
	if err != nil {
		return nil, err
	}
	path, err := c.lab.writeKubeconfig("cluster-api-nodes", config)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

type labObject struct {
	group, version, kind, name string
	spec, status               map[string]any
}

func (c *ClusterAPI) create(ctx context.Context, o labObject) error {
	plural := strings.ToLower(o.kind) + "s"
	resource := c.Dynamic.Resource(schema.GroupVersionResource{Group: o.group, Version: o.version, Resource: plural}).Namespace(ClusterAPINamespace)
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": o.group + "/" + o.version, "kind": o.kind,
		"metadata": map[string]any{"name": o.name, "namespace": ClusterAPINamespace},
	}}
	if o.spec != nil {
		made.Object["spec"] = o.spec
	}
	if err := c.apply(ctx, resource, made, ""); err != nil || o.status == nil {
		return err
	}
	made.Object["status"] = o.status
	return c.apply(ctx, resource, made, "status")
}

func (c *ClusterAPI) apply(ctx context.Context, to dynamic.ResourceInterface, o *unstructured.Unstructured, subresource string) error {
	data, err := o.MarshalJSON()
	if err != nil {
		return err
	}
	var of []string
	if subresource != "" {
		of = append(of, subresource)
	}
	force := true
	_, err = to.Patch(ctx, o.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: "drydock-lab", Force: &force}, of...)
	if err != nil {
		return fmt.Errorf("adding %s %s: %w", o.GetKind(), o.GetName(), err)
	}
	return nil
}

func (c *ClusterAPI) addAllKinds(ctx context.Context) error {
	l := c.lab
	dir, err := moduleOf(ctx, "cluster-api")
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(dir, "core", "config", "crd", "bases", "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("finding Cluster API's kinds in %s: %w", dir, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading a kind of Cluster API: %w", err)
		}
		var crd map[string]any
		if err := yaml.Unmarshal(text, &crd); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		crd["metadata"].(map[string]any)["labels"] = map[string]any{
			capiGroup + "/provider": "cluster-api", capiGroup + "/v1beta1": "v1beta1", capiGroup + "/v1beta2": "v1beta2",
		}
		if err := c.addKind(ctx, crd); err != nil {
			return err
		}
	}
	for kind, group := range map[string]string{"LabCluster": infraGroup, "LabMachine": infraGroup, "LabMachineTemplate": infraGroup, "LabControlPlane": planeGroup} {
		if err := c.addKind(ctx, labKind(group, "v1beta1", kind)); err != nil {
			return err
		}
	}
	_, err = l.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ClusterAPINamespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("adding Cluster API's namespace: %w", err)
	}
	return nil
}

func (c *ClusterAPI) addKind(ctx context.Context, crd map[string]any) error {
	text, err := yaml.Marshal(crd)
	if err != nil {
		return err
	}
	return c.lab.addKind(ctx, text)
}

// The kind accepts any fields.
func labKind(group, version, kind string) map[string]any {
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	lower := strings.ToLower(kind)
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": lower + "s." + group, "labels": map[string]any{capiGroup + "/v1beta2": "v1beta1"}},
		"spec": map[string]any{
			"group": group, "scope": "Namespaced",
			"names": map[string]any{"kind": kind, "listKind": kind + "List", "plural": lower + "s", "singular": lower},
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "properties": map[string]any{"spec": anything, "status": anything},
				}},
			}},
		},
	}
}

func (c *ClusterAPI) run(ctx context.Context, path string) error {
	l := c.lab
	certs := filepath.Join(l.dir, "cluster-api-certs")
	if err := os.MkdirAll(certs, 0o700); err != nil {
		return err
	}
	for file, text := range map[string][]byte{"tls.crt": l.serving.certPEM, "tls.key": l.serving.keyPEM} {
		if err := os.WriteFile(filepath.Join(certs, file), text, 0o600); err != nil {
			return fmt.Errorf("writing Cluster API's certificate: %w", err)
		}
	}
	_, _, err := l.startOnPorts(ctx, 3, func(ports []int) Spec {
		return Spec{
			Name: "cluster-api", Path: path, ReadyURL: "http://" + address(ports[0]) + "/healthz",
			Env: []string{"POD_NAMESPACE=" + ClusterAPINamespace, "POD_NAME=cluster-api", "POD_UID=cluster-api"},
			Args: []string{
				"--kubeconfig=" + l.AdminKubeconfig(), "--webhook-cert-dir=" + certs, fmt.Sprintf("--webhook-port=%d", ports[1]),
				"--health-addr=" + address(ports[0]), "--diagnostics-address=" + address(ports[2]), "--insecure-diagnostics",
			},
		}
	})
	return err
}

func (c *ClusterAPI) provide() error {
	ctx, cancel := context.WithCancel(context.Background())
	c.lab.mu.Lock()
	c.lab.ends = append(c.lab.ends, cancel)
	c.lab.mu.Unlock()
	// After an error, the next event tries again. The resync period causes one every second.
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(c.Dynamic, time.Second, ClusterAPINamespace, nil)
	settle := func(o any) {
		if one, ok := o.(*unstructured.Unstructured); ok {
			if err := c.settle(ctx, one); err != nil && ctx.Err() == nil {
				c.lab.say("LabMachine %s: %v", one.GetName(), err)
			}
		}
	}
	_, err := factory.ForResource(labMachines).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: settle, UpdateFunc: func(_, o any) { settle(o) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	return nil
}

func (c *ClusterAPI) settle(ctx context.Context, one *unstructured.Unstructured) error {
	resource, id := c.Dynamic.Resource(labMachines).Namespace(ClusterAPINamespace), "lab://"+string(one.GetUID())
	patch := func(text string, of ...string) error {
		_, err := resource.Patch(ctx, one.GetName(), types.MergePatchType, []byte(text), metav1.PatchOptions{}, of...)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	}
	if one.GetDeletionTimestamp() != nil {
		c.lab.Off(one.GetName())
		return patch(`{"metadata":{"finalizers":null}}`)
	}
	if provisioned, _, _ := unstructured.NestedBool(one.Object, "status", "initialization", "provisioned"); provisioned {
		return nil
	}
	if err := patch(fmt.Sprintf(`{"metadata":{"finalizers":[%q]},"spec":{"providerID":%q}}`, labFinalizer, id)); err != nil {
		return err
	}
	if err := c.lab.AddNode(ctx, NodeSpec{Name: one.GetName(), ProviderID: id}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return patch(`{"status":{"initialization":{"provisioned":true}}}`, "status")
}

// AddMachines creates a MachineSet, and waits until each Machine has a Node of the same name. With
// checked it adds a MachineHealthCheck that never finds a Machine unhealthy by itself.
func (c *ClusterAPI) AddMachines(ctx context.Context, set string, replicas int, checked bool) (names []string, err error) {
	labels := map[string]any{"set": set, capiGroup + "/cluster-name": ClusterAPICluster}
	selector := map[string]any{"matchLabels": map[string]any{"set": set}}
	err = c.create(ctx, labObject{capiGroup, "v1beta2", "MachineSet", set, map[string]any{
		"clusterName": ClusterAPICluster, "replicas": replicas, "selector": selector,
		"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
			"clusterName": ClusterAPICluster, "version": c.lab.version, "bootstrap": map[string]any{"dataSecretName": "none"},
			"infrastructureRef": map[string]any{"apiGroup": infraGroup, "kind": "LabMachineTemplate", "name": "workers"},
		}},
	}, nil})
	if err == nil && checked {
		err = c.create(ctx, labObject{capiGroup, "v1beta2", "MachineHealthCheck", set, map[string]any{
			"clusterName": ClusterAPICluster, "selector": selector, "checks": map[string]any{"nodeStartupTimeoutSeconds": 3600},
		}, nil})
	}
	if err != nil {
		return nil, err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, Patience, true, func(ctx context.Context) (bool, error) {
		all, err := c.Dynamic.Resource(CAPIMachines).Namespace(ClusterAPINamespace).List(ctx, metav1.ListOptions{LabelSelector: "set=" + set})
		if err != nil {
			return false, err
		}
		names = nil
		for i := range all.Items {
			if node, _, _ := unstructured.NestedString(all.Items[i].Object, "status", "nodeRef", "name"); node != "" {
				names = append(names, node)
			}
		}
		return len(names) == replicas, nil
	})
	if err != nil {
		return nil, fmt.Errorf("waiting for the Machines of MachineSet %s: %d of %d have a Node: %w", set, len(names), replicas, err)
	}
	return names, nil
}
