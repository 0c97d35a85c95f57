package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes/fake"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

var now = time.Date(2026, 11, 20, 21, 5, 0, 0, time.UTC)

// buffer may be read while another goroutine writes to it.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// desk is a person at a terminal, with a fake cluster. A replica of Drydock leads in it, unless the
// test brings a Lease.
type desk struct {
	t        *testing.T
	cluster  *fake.Clientset
	out, err *buffer
	plugin   *plugin
}

func newDesk(t *testing.T, objects ...runtime.Object) *desk {
	if !slices.ContainsFunc(objects, func(o runtime.Object) bool {
		l, is := o.(*coordinationv1.Lease)
		return is && l.Namespace == "drydock"
	}) {
		objects = append(slices.Clone(objects), leaseOf("drydock-0", now.Add(-2*time.Second)))
	}
	d := &desk{t: t, cluster: fake.NewClientset(objects...), out: &buffer{}, err: &buffer{}}
	d.plugin = newPlugin(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: d.out, ErrOut: d.err}, genericclioptions.NewConfigFlags(false))
	d.plugin.now = func() time.Time { return now }
	d.plugin.connect = func() (inspect.Client, error) {
		return inspect.Client{CoreV1Interface: d.cluster.CoreV1(), LeasesGetter: d.cluster.CoordinationV1()}, nil
	}
	return d
}

// run gives the exit code and what this call printed.
func (d *desk) run(args ...string) (code int, stdout, stderr string) {
	d.t.Helper()
	before, beforeErr := len(d.out.String()), len(d.err.String())
	code = d.plugin.execute(d.t.Context(), args)
	return code, d.out.String()[before:], d.err.String()[beforeErr:]
}

func (d *desk) node(name string) *corev1.Node {
	d.t.Helper()
	n, err := d.cluster.CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
	require.NoError(d.t, err)
	return n
}

func node(name string, annotations map[string]string) *corev1.Node {
	if annotations == nil {
		annotations = map[string]string{}
	}
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "1", Labels: map[string]string{}, Annotations: annotations}}
}

// record is a repair with the id, in the phase, as change makes it.
func record(id string, phase remediations.Phase, change ...func(*remediations.Record)) *remediations.Record {
	r := &remediations.Record{
		V: 1, ID: id, Policy: "node-not-ready", Cause: remediations.Cause{Alert: "9f2c0e5b6d1a4c33"}, Phase: phase,
		Step:  remediations.StepRef{Index: 1, Name: "reboot", Attempt: 1},
		Began: now.Add(-4 * time.Minute), Since: now.Add(-3 * time.Minute), Deadline: now.Add(7 * time.Minute),
	}
	if phase != remediations.PhasePending {
		r.Done = remediations.Attempts{{Name: "reboot", Number: 1}}
		r.Intent = &remediations.Intent{ID: id + "-1-1", At: now.Add(-3 * time.Minute), Outcome: remediations.CallAccepted}
	}
	if phase == remediations.PhaseExhausted {
		r.Deadline = time.Time{}
	}
	for _, c := range change {
		c(r)
	}
	return r
}

func held(reason remediations.Reason, message string, until time.Time) func(*remediations.Record) {
	return func(r *remediations.Record) {
		r.Hold = &remediations.Hold{Reason: reason, Message: message, Since: now.Add(-time.Minute)}
		if !until.IsZero() {
			r.Hold.Until = &until
		}
	}
}

func under(name string, r *remediations.Record) *corev1.Node {
	n := node(name, map[string]string{remediations.NodeRepairKey: r.Encode()})
	n.Labels[remediations.PhaseLabel] = string(r.Phase)
	return n
}

func ledgerOf(l *ledger.Ledger) *corev1.ConfigMap { return ledgerIn("drydock", l.Encode()) }

func ledgerIn(namespace string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: inspect.LedgerName,
			Labels: map[string]string{"app.kubernetes.io/name": "drydock", "app.kubernetes.io/component": "ledger"},
		},
		Data: data,
	}
}

var configured = map[string]string{"concurrent": "1", "concurrentPerZone": "1", "concurrentPerPool": "1", "unhealthy": "20%"}

func calmLedger() *ledger.Ledger {
	return &ledger.Ledger{Status: ledger.Status{Mode: remediations.ModeEnforce, Limits: configured}}
}

// golden compares with testdata/<name>.golden; UPDATE=1 rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got, "%s: UPDATE=1 rewrites it", file)
}

func historyOf(t *testing.T, entries ...remediations.Entry) string {
	t.Helper()
	text, err := json.Marshal(entries)
	require.NoError(t, err)
	return string(text)
}
