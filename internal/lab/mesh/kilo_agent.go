package mesh

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations/providers/kilo/election"
)

func (k *Kilo) join(ctx context.Context, node *Node) error {
	key := make([]byte, 32)
	key[0] = byte(node.number)
	patch := map[string]any{
		"spec": map[string]any{"podCIDR": node.PodCIDR().String(), "podCIDRs": []string{node.PodCIDR().String()}},
		"metadata": map[string]any{"annotations": map[string]any{
			election.LeaderKey: nil, election.WireGuardIPKey: nil,
			election.EndpointKey:    fmt.Sprintf("%s:%d", node.HostIP(), tunnelPort),
			election.InternalIPKey:  node.HostIP().String() + "/24",
			election.PublicKeyKey:   base64.StdEncoding.EncodeToString(key),
			election.GranularityKey: "location",
			election.LastSeenKey:    strconv.FormatInt(time.Now().Unix(), 10),
		}},
	}
	return k.patch(ctx, node, patch)
}

func (k *Kilo) patch(ctx context.Context, node *Node, patch map[string]any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding what Kilo writes on node %s: %w", node.Name, err)
	}
	_, err = k.client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: "kg"})
	if err != nil {
		return fmt.Errorf("writing Kilo's annotations on node %s: %w", node.Name, err)
	}
	return nil
}

// An agent learns at once whether it has an address in the mesh, but reports it only with a
// check-in.
func (k *Kilo) checkIns(ctx context.Context, node *Node, first time.Duration) {
	timer := time.NewTimer(first)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		k.mu.Lock()
		leads, silent := k.leads[node.Location] == node.Name, k.silent[node.Name]
		k.mu.Unlock()
		if silent {
			timer.Reset(k.every)
			continue
		}
		address := ""
		if leads {
			address = node.wireGuardIP() + "/16"
		}
		k.note(k.patch(ctx, node, map[string]any{"metadata": map[string]any{"annotations": map[string]string{
			election.LastSeenKey: strconv.FormatInt(time.Now().Unix(), 10), election.WireGuardIPKey: address,
		}}}))
		timer.Reset(k.every)
	}
}

// The routes are also set every second, because a node that stops checking in causes no event.
func (k *Kilo) follow(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		k.note(k.apply())
		select {
		case <-ctx.Done():
			return
		case <-k.changed:
		case <-tick.C:
		}
	}
}

func (k *Kilo) apply() error {
	nodes, err := k.lister.List(labels.Everything())
	if err != nil {
		return err
	}
	ready, leads := k.topology(nodes, time.Now())
	var g errgroup.Group
	for _, node := range k.network.nodes {
		k.mu.Lock()
		before := k.applied[node.Name]
		k.mu.Unlock()
		lines := k.network.routes(node, ready, leads)
		after := strings.Join(lines, "\n")
		if before == after {
			continue
		}
		g.Go(func() error {
			if err := node.host.ip(lines); err != nil {
				return fmt.Errorf("setting the routes of node %s: %w", node.Name, err)
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			k.applied[node.Name] = after
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if !maps.Equal(k.leads, leads) {
		for _, location := range slices.Sorted(maps.Keys(leads)) {
			if k.leads[location] != leads[location] {
				k.moves = append(k.moves, Lead{At: time.Now(), Location: location, Node: leads[location]})
			}
		}
		k.leads = leads
		close(k.news)
		k.news = make(chan struct{})
	}
	return nil
}

func (k *Kilo) topology(nodes []*corev1.Node, now time.Time) (ready map[string]bool, leads map[string]string) {
	var seen []election.Node
	for _, n := range nodes {
		if k.network.names[n.Name] != nil {
			seen = append(seen, election.Read(n, election.DefaultTopologyLabel))
		}
	}
	ready, leads = map[string]bool{}, map[string]string{}
	for location, members := range election.Locations(seen, now) {
		leads[location] = election.Elect(members)
		for _, m := range members {
			ready[m.Name] = true
		}
	}
	return ready, leads
}

func (k *Kilo) note(err error) {
	if err == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed = err
}
