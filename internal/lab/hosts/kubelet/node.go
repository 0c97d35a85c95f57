package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// node keeps the Node and its lease.
type node struct {
	config  Config
	servers []kubernetes.Interface // the one that answered last is the first
	failed  string                 // what was wrong last time, said once
	posted  bool                   // this boot's status has been written
	lease   *coordinationv1.Lease  // as it was last written; nil: it is read first
}

func newNode(c Config) *node {
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		c.Node.Status.NodeInfo.BootID = strings.TrimSpace(string(id))
	}
	n := &node{config: c}
	for _, url := range c.Servers {
		client, err := kubernetes.NewForConfig(&rest.Config{
			Host: url, QPS: -1,
			// Another one may answer while this one hangs.
			Timeout:         2 * time.Second,
			TLSClientConfig: rest.TLSClientConfig{CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile},
		})
		if err != nil {
			slog.Error("an API server is left out", "server", url, "error", err)
			continue
		}
		n.servers = append(n.servers, client)
	}
	return n
}

// keep renews four times in a lease.
func (n *node) keep(ctx context.Context) {
	tick := time.NewTicker(time.Duration(n.config.LeaseSeconds) * time.Second / 4)
	defer tick.Stop()
	for {
		n.renew(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (n *node) renew(ctx context.Context) {
	var err error
	for range n.servers {
		if err = n.renewAt(ctx, n.servers[0]); err == nil || ctx.Err() != nil {
			break
		}
		n.servers = append(n.servers[1:], n.servers[0])
	}
	now := ""
	if err != nil {
		now = err.Error()
	}
	if now != n.failed && ctx.Err() == nil {
		n.failed = now
		if err != nil {
			slog.Error("the node's status could not be written", "error", err)
		} else {
			slog.Info("the node's status is written")
		}
	}
}

func (n *node) renewAt(ctx context.Context, server kubernetes.Interface) error {
	now := time.Now()
	// The API server answers from memory. Where that is too old, the next renewal sees what is missing.
	is, err := server.CoreV1().Nodes().Get(ctx, n.config.Node.Name, metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		is, err = server.CoreV1().Nodes().Create(ctx, &n.config.Node, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("finding or registering the node: %w", err)
	}
	if err := n.renewLease(ctx, server, is.UID, now); err != nil {
		return fmt.Errorf("renewing the lease: %w", err)
	}
	if n.posted && says(is.Status, n.config.Node.Status) {
		return nil // as a kubelet, which posts minutes later what has not changed
	}
	status := n.config.Node.Status
	status.Conditions = conditions(status.Conditions, is.Status.Conditions, now)
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encoding the node's status: %w", err)
	}
	if _, err := server.CoreV1().Nodes().Patch(ctx, is.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("writing the node's status: %w", err)
	}
	n.posted = true
	return nil
}

// says that the node has the boot and the conditions that it is to have.
func says(is, want corev1.NodeStatus) bool {
	return is.NodeInfo.BootID == want.NodeInfo.BootID && !slices.ContainsFunc(want.Conditions, func(w corev1.NodeCondition) bool {
		return !slices.ContainsFunc(is.Conditions, func(c corev1.NodeCondition) bool { return c.Type == w.Type && c.Status == w.Status })
	})
}

// conditions are those of a healthy node, each since it was so.
func conditions(healthy, before []corev1.NodeCondition, now time.Time) []corev1.NodeCondition {
	var out []corev1.NodeCondition
	for _, c := range healthy {
		c.LastHeartbeatTime, c.LastTransitionTime = metav1.NewTime(now), metav1.NewTime(now)
		for _, b := range before {
			if b.Type == c.Type && b.Status == c.Status {
				c.LastTransitionTime = b.LastTransitionTime
			}
		}
		out = append(out, c)
	}
	return out
}

// renewLease renews the lease as it was last written, as a kubelet does. After an error it is read again.
func (n *node) renewLease(ctx context.Context, server kubernetes.Interface, uid types.UID, now time.Time) error {
	leases, lease := server.CoordinationV1().Leases(corev1.NamespaceNodeLease), n.lease
	n.lease = nil
	var err error
	if lease == nil {
		lease, err = leases.Get(ctx, n.config.Node.Name, metav1.GetOptions{})
	}
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return err
	}
	if missing {
		lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
			Name: n.config.Node.Name, Namespace: corev1.NamespaceNodeLease,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: n.config.Node.Name, UID: uid}},
		}}
	}
	seconds, at := int32(n.config.LeaseSeconds), metav1.NewMicroTime(now)
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &n.config.Node.Name, &seconds, &at
	if missing {
		lease, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	} else {
		lease, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	}
	if err == nil {
		n.lease = lease
	}
	return err
}
