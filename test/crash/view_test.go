package crash

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// ledgerName is the name of the ledger that the chart's roles allow Drydock to write.
const ledgerName = "drydock-ledger"

// view has a yard's Nodes and ledger, from a watch of the test's own. The limits are checked for
// every state that the watch delivers.
type view struct {
	yard *yard

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	nodes   map[string]*corev1.Node
	ledger  *ledger.Ledger
	// most is the largest number of slots so far.
	most int
}

func newView(y *yard) *view {
	y.t.Helper()
	v := &view{yard: y, changed: make(chan struct{}), nodes: map[string]*corev1.Node{}}
	client := y.lab.Client()
	ours := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.LabelSelector = yardLabel + "=" + y.name
	}))
	maps := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(y.name))
	handler := cache.ResourceEventHandlerFuncs{AddFunc: v.see, UpdateFunc: func(_, o any) { v.see(o) }}
	for _, i := range []cache.SharedIndexInformer{ours.Core().V1().Nodes().Informer(), maps.Core().V1().ConfigMaps().Informer()} {
		_, err := i.AddEventHandler(handler)
		require.NoError(y.t, err)
	}
	stop := make(chan struct{})
	ours.Start(stop)
	maps.Start(stop)
	y.t.Cleanup(func() {
		close(stop)
		ours.Shutdown()
		maps.Shutdown()
	})
	ours.WaitForCacheSync(stop)
	return v
}

func (v *view) see(o any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch o := o.(type) {
	case *corev1.Node:
		v.nodes[o.Name] = o
		flying := 0
		for _, n := range v.nodes {
			if remediations.Phase(n.Labels[remediations.PhaseLabel]).InFlight() {
				flying++
			}
		}
		if flying > v.yard.slots {
			v.yard.breach("%d Nodes are in flight, the limit is %d", flying, v.yard.slots)
		}
	case *corev1.ConfigMap:
		if o.Name != ledgerName {
			return
		}
		l, err := ledger.Decode(o.Data)
		if err != nil {
			v.yard.breach("the ledger cannot be read: %v", err)
			return
		}
		if len(l.Slots) > v.yard.slots {
			v.yard.breach("the ledger has %d slots, the limit is %d", len(l.Slots), v.yard.slots)
		}
		v.ledger, v.most = l, max(v.most, len(l.Slots))
	}
	close(v.changed)
	v.changed = make(chan struct{})
}

// await waits until the view is as wanted.
func (y *yard) await(what string, wanted func(v *view) bool) {
	y.t.Helper()
	v := y.view
	deadline := time.After(lab.Patience)
	for {
		v.mu.Lock()
		ok, changed := wanted(v), v.changed
		v.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			require.Failf(y.t, "it did not come", "%s within %s; there is %s", what, lab.Patience, v)
		}
	}
}

// String returns what Drydock has written.
func (v *view) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := fmt.Sprintf("ledger %+v", v.ledger)
	for _, name := range slices.Sorted(maps.Keys(v.nodes)) {
		n := v.nodes[name]
		out += fmt.Sprintf("\n%s: %v", name, n.Labels[remediations.PhaseLabel])
		for k, a := range n.Annotations {
			if remediations.Relevant(k) {
				out += "\n  " + k + "=" + a
			}
		}
	}
	return out
}

// record returns the repair under way on a node, or nil. It may only be called within await.
func (v *view) record(node string) *remediations.Record {
	return remediations.ReadJournal(v.nodes[node]).Record
}

// readLedger reads the ledger from the API server.
func (y *yard) readLedger(ctx context.Context) (*ledger.Ledger, error) {
	cm, err := y.lab.Client().CoreV1().ConfigMaps(y.name).Get(ctx, ledgerName, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return ledger.Decode(cm.Data)
}
