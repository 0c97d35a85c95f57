package crash

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/lab"
)

// yardLabel is the label that has the name of a Node's yard.
const yardLabel = "drydock-lab/yard"

// yard is one Drydock with everything of its own: a namespace with the chart's roles, its ledger
// and its Lease, Nodes, a provider, and alerts. Many yards share one API server and one
// Alertmanager without knowing each other: the proxy of a yard shows its Drydock only the yard's
// Nodes.
type yard struct {
	options
	t        *testing.T
	lab      *lab.Lab
	name     string
	nodes    []string
	provider *provider
	replicas []*replica
	view     *view
	alerts   *alerts
	underway atomic.Int64
	changes  atomic.Int64  // the number of calls with a name
	back     chan struct{} // closed when held machines may come up

	mu       sync.Mutex
	hook     hook
	log      []string
	seen     map[string]int
	leader   *replica
	breaches []string
}

// options describe a yard. With the zero value there is one node, one replica and one slot, and the
// first reboot cures.
type options struct {
	nodes, replicas, slots int
	// cures is the number of the reboot that cures a machine, counted from 1.
	cures int
	// attempts is the number of attempts in the plan. wait is how long the proof of each may take.
	// The defaults are 2 and 30s, many times what a proof takes with a dozen yards at the same
	// time.
	attempts int
	wait     string
	// rebootTime is how long a reboot takes. The default is 200ms.
	rebootTime time.Duration
	// unled switches leader election off.
	unled bool
	// steady is for tests that lose no leader: then no replica may lose the lead on a busy machine
	// either.
	steady bool
	// held keeps machines down until the test lets them come up.
	held bool
}

// patient is a long wait, for tests without a spare attempt. With a shorter one, a late proof on a
// busy machine would cost an attempt.
const patient = "60s"

func (o options) withDefaults() options {
	o.nodes, o.replicas, o.slots, o.cures = max(o.nodes, 1), max(o.replicas, 1), max(o.slots, 1), max(o.cures, 1)
	if o.attempts == 0 {
		o.attempts = 2
	}
	if o.wait == "" {
		o.wait = "30s"
	}
	if o.rebootTime == 0 {
		o.rebootTime = 200 * time.Millisecond
	}
	return o
}

var yards atomic.Int64

// newYard makes a yard. Its Drydock does not run before start.
func newYard(t *testing.T, s site, o options) *yard {
	t.Helper()
	ctx := t.Context()
	y := &yard{
		options: o.withDefaults(), t: t, lab: s.lab, name: fmt.Sprintf("yard-%d", yards.Add(1)), seen: map[string]int{}, back: make(chan struct{}),
	}
	require.NoError(t, y.lab.InstallChart(ctx, y.name, y.name, nil))
	for i := range y.options.nodes {
		name := fmt.Sprintf("%s-node-%d", y.name, i)
		spec := lab.NodeSpec{Name: name, ProviderID: "civo://" + uuid.NewString(), Labels: map[string]string{yardLabel: y.name}}
		require.NoError(t, y.lab.AddNode(ctx, spec))
		// No lease is renewed here, so this lease is valid for longer than any test takes.
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: ptr.To[int32](3600), RenewTime: ptr.To(metav1.NowMicro())},
		}
		_, err := y.lab.Client().CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, lease, metav1.CreateOptions{})
		require.NoError(t, err)
		y.nodes = append(y.nodes, name)
	}
	y.view = newView(y)
	y.alerts = newAlerts(y)
	y.provider = newProvider(y)
	for i := range y.options.replicas {
		y.replicas = append(y.replicas, newReplica(y, i, s.token))
	}
	t.Cleanup(func() {
		if t.Failed() {
			y.mu.Lock()
			defer y.mu.Unlock()
			const last = 60 // the last lines only, because all of them would hide what other tests print
			for _, l := range y.log[max(0, len(y.log)-last):] {
				t.Log(l)
			}
		}
	})
	return y
}

// start runs the replicas and returns when one of them leads.
func (y *yard) start() {
	y.t.Helper()
	for _, r := range y.replicas {
		r.start()
	}
	y.await("a leader", func(v *view) bool { return v.ledger != nil })
}

// sees waits until the leader has written its status and is not blind.
func (y *yard) sees() {
	y.t.Helper()
	y.await("a leader that is not blind", func(v *view) bool {
		return v.ledger != nil && v.ledger.Status.Mode != "" && v.ledger.Status.Blind == ""
	})
}

// config returns the configuration of every replica.
func (y *yard) config() map[string]any {
	return map[string]any{
		"alertmanager":   map[string]any{"pollInterval": "1s"},
		"limits":         map[string]any{"concurrent": y.slots, "unhealthy": "100%"},
		"leaderElection": y.election(),
		"providers":      map[string]any{"civo": map[string]any{"apiURL": y.provider.url(), "timeout": "20s"}},
		"policies": []any{map[string]any{
			"name": "node-not-ready", "match": []string{`remediation="node-not-ready"`}, "for": "0s", "proofFor": "1s", "cooldown": "0s",
			"witness": []any{map[string]any{"ready": false}},
			"plan":    []any{map[string]any{"step": "reboot", "wait": y.wait, "attempts": y.attempts}},
		}},
	}
}

// election returns the settings of leader election: a new leader is found soon after the last one
// has fallen.
func (y *yard) election() map[string]any {
	e := map[string]any{"enabled": !y.unled, "leaseDuration": "6s", "renewDeadline": "5s"}
	if y.steady {
		e["leaseDuration"], e["renewDeadline"] = "60s", "50s"
	}
	return e
}

// proof returns how long after its intent the proof of an attempt may come and be complete.
func (y *yard) proof() time.Duration {
	wait, err := time.ParseDuration(y.wait)
	require.NoError(y.t, err)
	return wait + time.Second // plus the policy's proofFor
}

// fail makes the node report that it is not Ready, and its alert fire.
func (y *yard) fail(i int) {
	y.t.Helper()
	require.NoError(y.t, y.lab.SetCondition(y.t.Context(), y.nodes[i], corev1.NodeReady, corev1.ConditionFalse, "KubeletNotReady"))
	require.NoError(y.t, y.alerts.fire(y.t.Context(), y.nodes[i]))
}

// on sets the hook for all following calls. A nil hook does nothing.
func (y *yard) on(h hook) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.hook = h
}

// breach records a promise that was broken. Hooks run in goroutines that cannot end the test
// themselves.
func (y *yard) breach(format string, args ...any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.breaches = append(y.breaches, fmt.Sprintf(format, args...))
}

// note adds a line to what a failed test prints.
func (y *yard) note(format string, args ...any) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.log = append(y.log, time.Now().Format("05.000 ")+fmt.Sprintf(format, args...))
}
