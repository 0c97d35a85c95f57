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

type node struct {
	config  Config
	servers []kubernetes.Interface // the one that answered last comes first
	failed  string                 // the last error, so that each error is logged once
	written
}

type written struct {
	posted bool                  // the status of this boot was written
	lease  *coordinationv1.Lease // as last written; if nil, it must be read first
}

// For a kubelet, a hanging API server looks like a slow one. So after stagger it tries the next API
// server, too. patience bounds one answer, and is almost as long as the node may be silent.
const (
	stagger  = time.Second
	patience = 5 * time.Second
)

func newNode(c Config) *node {
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		c.Node.Status.NodeInfo.BootID = strings.TrimSpace(string(id))
	}
	n := &node{config: c}
	for _, url := range c.Servers {
		client, err := kubernetes.NewForConfig(&rest.Config{
			Host: url, QPS: -1, Timeout: patience,
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

// The lease is renewed four times within its duration.
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
	err := n.renewAtAny(ctx)
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

// renewAtAny tries one API server after the other. If two attempts run at the same time, only one
// of them can write the lease.
func (n *node) renewAtAny(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the other answers are not needed
	type answer struct {
		of  int
		did written
		err error
	}
	answers := make(chan answer, len(n.servers))
	before := n.written
	n.lease = nil // it is read again after an error
	next := time.NewTimer(0)
	defer next.Stop()
	var err error
	for asked, answered := 0, 0; answered < len(n.servers); {
		select {
		case <-next.C:
			if asked == len(n.servers) {
				continue
			}
			go func(of int, server kubernetes.Interface) {
				did, err := n.renewAt(ctx, server, before)
				answers <- answer{of, did, err}
			}(asked, n.servers[asked])
			asked++
			next.Reset(stagger)
		case a := <-answers:
			answered++
			if err = a.err; err == nil {
				n.written = a.did
				n.servers[0], n.servers[a.of] = n.servers[a.of], n.servers[0]
				return nil
			}
			next.Reset(0)
		}
	}
	return err
}

func (n *node) renewAt(ctx context.Context, server kubernetes.Interface, before written) (did written, err error) {
	now := time.Now()
	// With ResourceVersion 0, the API server answers from its cache. If the cache is outdated, the
	// next renewal corrects the result.
	is, err := server.CoreV1().Nodes().Get(ctx, n.config.Node.Name, metav1.GetOptions{ResourceVersion: "0"})
	if apierrors.IsNotFound(err) {
		is, err = server.CoreV1().Nodes().Create(ctx, &n.config.Node, metav1.CreateOptions{})
	}
	if err != nil {
		return did, fmt.Errorf("finding or registering the node: %w", err)
	}
	if did.lease, err = n.renewLease(ctx, server, before.lease.DeepCopy(), is.UID, now); err != nil {
		return did, fmt.Errorf("renewing the lease: %w", err)
	}
	did.posted = true
	if before.posted && says(is.Status, n.config.Node.Status) {
		return did, nil // nothing to post: a real kubelet, too, posts an unchanged status only every few minutes
	}
	status := n.config.Node.Status
	status.Conditions = conditions(status.Conditions, is.Status.Conditions, now)
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return did, fmt.Errorf("encoding the node's status: %w", err)
	}
	if _, err := server.CoreV1().Nodes().Patch(ctx, is.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return did, fmt.Errorf("writing the node's status: %w", err)
	}
	return did, nil
}

func says(is, want corev1.NodeStatus) bool {
	return is.NodeInfo.BootID == want.NodeInfo.BootID && !slices.ContainsFunc(want.Conditions, func(w corev1.NodeCondition) bool {
		return !slices.ContainsFunc(is.Conditions, func(c corev1.NodeCondition) bool { return c.Type == w.Type && c.Status == w.Status })
	})
}

// The conditions keep their transition times from before.
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

// A real kubelet, too, renews its lease without reading it first.
func (n *node) renewLease(
	ctx context.Context, server kubernetes.Interface, lease *coordinationv1.Lease, uid types.UID, now time.Time,
) (_ *coordinationv1.Lease, err error) {
	leases := server.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	if lease == nil {
		lease, err = leases.Get(ctx, n.config.Node.Name, metav1.GetOptions{})
	}
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return nil, err
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
		return leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	return leases.Update(ctx, lease, metav1.UpdateOptions{})
}
