package kube

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/announce"
	"drydock.dev/drydock/remediations/engine"
)

// The first version of the API server with the Node conditions of KEP-5683. The version decides,
// not the feature gate: only clients that may read the API server's metrics can see the gate, and
// it does not change what the API server stores.
var conditionsSince = version.MustParseSemantic("1.37.0")

// Conditions shows repairs in the Node conditions of KEP-5683 (DrainInProgress and
// MaintenanceInProgress). Each PATCH of nodes/status names the resourceVersion that was read, so it
// never overwrites another writer's change.
type Conditions struct {
	Client   kubernetes.Interface
	Registry remediations.Registry
	// From the cache.
	Nodes func(context.Context) ([]*corev1.Node, error)
	// The annotations of other systems that Trim keeps (see Fleet.Keep).
	Annotations []string
	Now         func() time.Time
	Log         logr.Logger

	known atomic.Pointer[bool]
}

var _ engine.Conditions = (*Conditions)(nil)

// Show sets and removes conditions on the Node so that they match its repair record. It returns the
// Node as it is then.
func (c *Conditions) Show(ctx context.Context, n *corev1.Node) (*corev1.Node, error) {
	set, remove := c.Registry.ReadJournal(n).ConditionsDue(n)
	if len(set) > 0 {
		known, err := c.knows(ctx)
		if err != nil {
			return nil, err
		}
		if !known {
			set = nil
		}
	}
	if len(set)+len(remove) == 0 {
		return n, nil
	}
	for i := range set {
		set[i].LastTransitionTime, set[i].LastHeartbeatTime = metav1.NewTime(c.Now()), metav1.NewTime(c.Now())
	}
	body, err := announce.Patch(n, set, remove)
	if err != nil {
		return nil, err
	}
	written, err := c.Client.CoreV1().Nodes().Patch(ctx, n.Name, types.StrategicMergePatchType, body, metav1.PatchOptions{FieldManager: remediations.FieldManager}, "status")
	if err != nil {
		return nil, translate("writing the conditions of Node "+n.Name, err)
	}
	return Trim(written, c.Annotations...), nil
}

// Keep calls Show for all cached Nodes, to make up for calls that failed or were never made.
func (c *Conditions) Keep(ctx context.Context) error {
	nodes, err := c.Nodes(ctx)
	if err != nil {
		return err
	}
	var out []error
	for _, n := range nodes {
		if _, err := c.Show(ctx, n); err != nil && !errors.Is(err, engine.ErrConflict) && !errors.Is(err, engine.ErrNotFound) {
			out = append(out, err)
		}
	}
	return errors.Join(out...)
}

// knows requests the API server's version until there is an answer, and then remembers the result.
func (c *Conditions) knows(ctx context.Context) (bool, error) {
	if known := c.known.Load(); known != nil {
		return *known, nil
	}
	info, err := c.Client.Discovery().ServerVersionWithContext(ctx)
	if err != nil {
		return false, fmt.Errorf("reading the API server's version, to find out whether it knows the conditions of KEP-5683: %w", err)
	}
	is, err := version.ParseGeneric(info.GitVersion)
	if err != nil {
		return false, fmt.Errorf("reading the API server's version %.40q: %w", info.GitVersion, err)
	}
	known := is.AtLeast(conditionsSince)
	c.known.Store(&known)
	if !known {
		c.Log.Info("Drydock sets no Node conditions although announce has them: the API server's version is below 1.37 and does not know them", "version", info.GitVersion)
	}
	return known, nil
}
