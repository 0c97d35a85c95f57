package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab/programs"
)

const kuredNamespace = metav1.NamespaceSystem

// Kured runs the released kured on one of the lab's nodes, from kured's own manifests, as long as
// its pod exists. It always listens on port 8080 of this machine.
type Kured struct {
	lab               *Lab
	sentinel, reboots string
	spec              Spec

	mu      sync.Mutex
	process *Process
}

// StartKured starts kured for a node. affinity is an additional expression for the node affinity of
// kured's DaemonSet, as YAML. kured starts after a delay of up to a minute and a half, and then
// checks every second whether a reboot is requested.
func (l *Lab) StartKured(ctx context.Context, node, affinity string) (*Kured, error) {
	paths, err := programs.Build(ctx, os.Stderr, "kured")
	if err != nil {
		return nil, err
	}
	k := &Kured{lab: l, sentinel: filepath.Join(l.dir, "kured-reboot-required"), reboots: filepath.Join(l.dir, "kured-reboots")}
	if err := k.install(ctx, node, affinity); err != nil {
		return nil, err
	}
	token, err := l.ServiceAccountToken(ctx, kuredNamespace, "kured")
	if err != nil {
		return nil, err
	}
	tokenFile, err := l.WriteSecret("kured-token", token)
	if err != nil {
		return nil, err
	}
	server, err := url.Parse(l.api)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(server.Host)
	if err != nil {
		return nil, err
	}
	k.spec = Spec{
		Name: "kured", Path: "unshare", Env: []string{"KURED_NODE_ID=" + node, "KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port},
		Args: []string{
			"--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", kuredPod,
			"sh", tokenFile, l.ca.file(), paths["kured"], "--period=1s", "--annotate-nodes",
			"--reboot-sentinel=" + k.sentinel, "--reboot-command=sh -c 'echo reboot >>" + k.reboots + "'",
		},
	}
	return k, k.follow(ctx, node)
}

// This script does what a container runtime does for the pod. It puts the ServiceAccount's files
// where every client looks for them. kured enters the namespaces of process 1 to run commands on
// its host, so the script is process 1 of its own PID namespace.
const kuredPod = `d=/var/run/secrets/kubernetes.io/serviceaccount && mount -t tmpfs tmpfs /run && mkdir -p $d &&
cp "$1" $d/token && cp "$2" $d/ca.crt && printf kube-system >$d/namespace && shift 2 && exec "$@"`

func (k *Kured) install(ctx context.Context, node, affinity string) error {
	var expression map[string]any
	if err := yaml.Unmarshal([]byte(affinity), &expression); err != nil {
		return fmt.Errorf("reading the node affinity of kured: %w", err)
	}
	dir, err := moduleOf(ctx, "kured")
	if err != nil {
		return err
	}
	rbac, err := os.ReadFile(filepath.Join(dir, "kured-rbac.yaml"))
	if err != nil {
		return fmt.Errorf("reading kured's manifests: %w", err)
	}
	set, err := os.ReadFile(filepath.Join(dir, "kured-ds.yaml"))
	if err != nil {
		return fmt.Errorf("reading kured's manifests: %w", err)
	}
	if err := k.lab.Apply(ctx, rbac); err != nil {
		return err
	}
	terms := []any{map[string]any{"matchExpressions": []any{
		expression, map[string]any{"key": corev1.LabelHostname, "operator": "In", "values": []any{node}},
	}}}
	for _, text := range bytes.Split(set, []byte("---\n")) {
		one := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(text, &one.Object); err != nil {
			return fmt.Errorf("reading kured's manifests: %w", err)
		}
		if one.GetKind() == "DaemonSet" {
			err := unstructured.SetNestedSlice(one.Object, terms, "spec", "template", "spec", "affinity", "nodeAffinity",
				"requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
			if err != nil {
				return err
			}
			if text, err = yaml.Marshal(one.Object); err != nil {
				return err
			}
		}
		if err := k.lab.Apply(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// It ends with the lab.
func (k *Kured) follow(ctx context.Context, node string) error {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k.lab.mu.Lock()
	k.lab.ends = append(k.lab.ends, cancel)
	k.lab.mu.Unlock()
	// After an error, the next event tries again. The resync period causes one every second.
	factory := informers.NewSharedInformerFactoryWithOptions(k.lab.client, time.Second, informers.WithNamespace(kuredNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "name=kured" }))
	pods := factory.Core().V1().Pods().Informer()
	settle := func(any) {
		if err := k.settle(ctx, node, pods.GetStore().List()); err != nil && ctx.Err() == nil {
			k.lab.say("kured on node %s: %v", node, err)
		}
	}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: settle, UpdateFunc: func(_, o any) { settle(o) }, DeleteFunc: settle})
	factory.Start(ctx.Done())
	return err
}

func (k *Kured) settle(ctx context.Context, node string, pods []any) (err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	wanted, running := false, k.process != nil && !closed(k.process.Done())
	for _, o := range pods {
		pod, ok := o.(*corev1.Pod)
		switch {
		case !ok || pod.DeletionTimestamp != nil:
		case pod.Spec.NodeName == "":
			err = k.lab.client.CoreV1().Pods(kuredNamespace).Bind(ctx, &corev1.Binding{
				ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: node},
			}, metav1.CreateOptions{})
			if err != nil {
				return err
			}
		default:
			wanted = true
		}
	}
	switch {
	case wanted == running:
	case !wanted:
		k.process.Kill()
	case k.process == nil:
		k.process, err = k.lab.startPart(ctx, k.spec)
	default:
		err = k.process.Start(ctx)
	}
	return err
}

// Runs reports whether kured's program is running.
func (k *Kured) Runs() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.process != nil && !closed(k.process.Done())
}

// Ask requests a reboot of the node, as an update of system packages does.
func (k *Kured) Ask() error { return os.WriteFile(k.sentinel, nil, 0o644) }

// Booted puts kured into the state after a reboot: the request is gone, and the program starts
// again.
func (k *Kured) Booted() error {
	err := os.Remove(k.sentinel)
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.process != nil {
		k.process.Kill()
	}
	return err
}

// Reboots returns how often kured has rebooted the machine.
func (k *Kured) Reboots() (int, error) {
	text, err := os.ReadFile(k.reboots)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	return strings.Count(string(text), "\n"), err
}
