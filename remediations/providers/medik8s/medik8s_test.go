package medik8s

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// The tests run one after the other: each Keep reads the Leases of all.
func TestMain(m *testing.M) { lab.Main(m, lab.Options{Components: lab.APIServerOnly}) }

var (
	made        sync.Once
	instant     = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	otherHolder = "NodeHealthCheck-workers"
)

// world is a Node, and the Leases with a clock of their own.
type world struct {
	t    *testing.T
	now  time.Time
	node *corev1.Node
	Keeper
}

func newWorld(t *testing.T, node string) *world {
	t.Helper()
	l := lab.Shared(t)
	made.Do(func() {
		_, err := l.Client().CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}, metav1.CreateOptions{})
		require.NoError(t, err)
	})
	n, err := l.Client().CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, metav1.CreateOptions{})
	require.NoError(t, err)
	w := &world{t: t, now: instant, node: n}
	w.Leases = Leases{Client: l.Client(), Now: func() time.Time { return w.now }}
	return w
}

func (w *world) machine() engine.Machine {
	return engine.Machine{Node: w.node.Name, UID: string(w.node.UID)}
}

// lease returns the node's Lease; nil: there is none.
func (w *world) lease() *coordinationv1.Lease {
	lease, err := w.Client.CoordinationV1().Leases(Namespace).Get(w.t.Context(), "node-"+w.node.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	require.NoError(w.t, err)
	return lease
}

// held gives the Lease a holder.
func (w *world) held(by string, renewed *time.Time, seconds *int32) {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "node-" + w.node.Name, Namespace: Namespace}}
	lease.Spec = coordinationv1.LeaseSpec{HolderIdentity: &by, LeaseDurationSeconds: seconds}
	if renewed != nil {
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(*renewed))
	}
	_, err := w.Client.CoordinationV1().Leases(Namespace).Create(w.t.Context(), lease, metav1.CreateOptions{})
	require.NoError(w.t, err)
}

// record puts a record of that phase on the Node; empty: none.
func (w *world) record(phase remediations.Phase, intent bool) {
	n, err := w.Client.CoreV1().Nodes().Get(w.t.Context(), w.node.Name, metav1.GetOptions{})
	require.NoError(w.t, err)
	n.Annotations = map[string]string{}
	if phase != "" {
		r := &remediations.Record{
			V: remediations.RecordVersion, ID: "abcdef", Policy: "p", Cause: remediations.Cause{Alert: "f"}, Phase: phase,
			Step: remediations.StepRef{Name: "reboot", Attempt: 1}, Began: instant, Since: instant, Deadline: instant,
		}
		if intent {
			r.Intent, r.Done = &remediations.Intent{ID: "abcdef-0-1", At: instant}, remediations.Attempts{{Name: "reboot", Number: 1}}
		}
		n.Annotations[remediations.NodeRepairKey] = r.Encode()
		require.NoError(w.t, remediations.ReadJournal(n).Malformed)
	}
	_, err = w.Client.CoreV1().Nodes().Update(w.t.Context(), n, metav1.UpdateOptions{})
	require.NoError(w.t, err)
}

// TestWhoseLeaseItIs, by Medik8s' rule: another holder is named and its Lease not touched, and a
// Lease that has ended is taken.
func TestWhoseLeaseItIs(t *testing.T) {
	ago := func(d time.Duration) *time.Time { return ptr.To(instant.Add(-d)) }
	for i, c := range []struct {
		name    string
		by      string
		renewed *time.Time
		seconds *int32
		free    bool
	}{
		{"somebody else's", otherHolder, ago(9 * time.Minute), ptr.To[int32](600), false},
		{"over", otherHolder, ago(11 * time.Minute), ptr.To[int32](600), true},
		{"never renewed", otherHolder, nil, ptr.To[int32](600), true},
		{"without a duration", otherHolder, ago(0), nil, true},
		{"by a clock that is ahead", otherHolder, ago(-5 * time.Second), ptr.To[int32](55), false},
		{"of the future", otherHolder, ago(-time.Minute), ptr.To[int32](600), true},
		{"Drydock's own", Holder, ago(9 * time.Minute), ptr.To[int32](600), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, fmt.Sprintf("whose-%d", i))
			w.held(c.by, c.renewed, c.seconds)
			was := w.lease()
			free, took := w.Free(t.Context(), w.machine(), "hosts"), w.Take(t.Context(), w.machine(), "hosts")
			if !c.free {
				for _, err := range []error{free, took} {
					require.ErrorIs(t, err, engine.ErrTaken)
					require.ErrorContains(t, err, fmt.Sprintf(`"NodeHealthCheck-workers" holds Lease medik8s-leases/node-whose-%d until 2026-03-04T12:01:00Z`, i))
				}
				require.NoError(t, w.Keep(t.Context()))
				require.Equal(t, was.ResourceVersion, w.lease().ResourceVersion, "somebody else's is left as it is")
				return
			}
			require.NoError(t, free)
			require.NoError(t, took)
			require.Equal(t, Holder, *w.lease().Spec.HolderIdentity)
			require.Equal(t, instant, w.lease().Spec.RenewTime.UTC())
		})
	}
}

// TestALeaseIsTakenKeptAndGivenBack: the Lease has the form of Medik8s' own. It is renewed in the
// second half of its time while the repair is in flight, and deleted when the repair ends, whatever
// wrote it.
func TestALeaseIsTakenKeptAndGivenBack(t *testing.T) {
	w := newWorld(t, "kept")
	ctx := t.Context()
	require.NoError(t, w.Free(ctx, w.machine(), "hosts"))
	require.Nil(t, w.lease(), "asking takes nothing")
	w.record(remediations.PhaseActing, true)
	require.NoError(t, w.Take(ctx, w.machine(), "hosts"))
	first := w.lease()
	require.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "kept", UID: w.node.UID}}, first.OwnerReferences)
	require.Equal(t, int32(600), *first.Spec.LeaseDurationSeconds)
	require.Equal(t, instant, first.Spec.AcquireTime.UTC())

	w.now = instant.Add(4 * time.Minute)
	require.NoError(t, w.Keep(ctx))
	require.NoError(t, w.Take(ctx, w.machine(), "hosts"))
	require.Equal(t, first.ResourceVersion, w.lease().ResourceVersion, "it is young")
	w.now = instant.Add(6 * time.Minute)
	w.record(remediations.PhaseVerifying, true)
	require.NoError(t, w.Keep(ctx))
	require.Equal(t, w.now, w.lease().Spec.RenewTime.UTC())
	require.Equal(t, instant, w.lease().Spec.AcquireTime.UTC())

	w.now = instant.Add(14 * time.Minute)
	w.record(remediations.PhasePending, true)
	require.NoError(t, w.Keep(ctx))
	require.Equal(t, instant.Add(6*time.Minute), w.lease().Spec.RenewTime.UTC(), "between two steps it is left to end")

	for name, ended := range map[string]func(){
		"no record":                   func() { w.record("", false) },
		"a plan that has run out":     func() { w.record(remediations.PhaseExhausted, true) },
		"another repair, which waits": func() { w.record(remediations.PhasePending, false) },
	} {
		require.NoError(t, w.Take(ctx, w.machine(), "hosts"), name)
		require.NotNil(t, w.lease(), name)
		ended()
		require.NoError(t, w.Keep(ctx), name)
		require.Nil(t, w.lease(), name)
	}
}

// TestTheLeaseOfANodeThatIsGoneIsGivenBack, even if another Node has its name now and has a repair
// in flight.
func TestTheLeaseOfANodeThatIsGoneIsGivenBack(t *testing.T) {
	w := newWorld(t, "gone")
	ctx := t.Context()
	require.NoError(t, w.Take(ctx, w.machine(), "hosts"))
	w.record(remediations.PhaseActing, true)
	require.NoError(t, w.Keep(ctx))
	require.NotNil(t, w.lease())
	require.NoError(t, w.Client.CoreV1().Nodes().Delete(ctx, w.node.Name, metav1.DeleteOptions{}))
	other, err := w.Client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.node.Name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	w.record(remediations.PhaseActing, true)
	require.NoError(t, w.Keep(ctx))
	require.Nil(t, w.lease())
	require.NoError(t, w.Take(ctx, engine.Machine{Node: other.Name, UID: string(other.UID)}, ""))
	require.NoError(t, w.Keep(ctx))
	require.Equal(t, other.UID, w.lease().OwnerReferences[0].UID)
}

// TestAnUnreadableRecordKeepsTheLease until the Lease ends.
func TestAnUnreadableRecordKeepsTheLease(t *testing.T) {
	w := newWorld(t, "malformed")
	require.NoError(t, w.Take(t.Context(), w.machine(), "hosts"))
	n, err := w.Client.CoreV1().Nodes().Get(t.Context(), w.node.Name, metav1.GetOptions{})
	require.NoError(t, err)
	n.Annotations = map[string]string{remediations.NodeRepairKey: "{"}
	_, err = w.Client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, w.Keep(t.Context()))
	require.NotNil(t, w.lease())
}

// TestWhoMayNotReadLeasesTakesNone: the error names the missing right, and does not claim that
// another holder has the Lease.
func TestWhoMayNotReadLeasesTakesNone(t *testing.T) {
	w := newWorld(t, "forbidden")
	stranger, err := lab.Shared(t).ClientAs("nobody")
	require.NoError(t, err)
	w.Client = stranger
	for _, err := range []error{w.Free(t.Context(), w.machine(), "hosts"), w.Take(t.Context(), w.machine(), "hosts")} {
		require.True(t, apierrors.IsForbidden(err), err)
		require.NotErrorIs(t, err, engine.ErrTaken)
		require.ErrorContains(t, err, "Lease medik8s-leases/node-forbidden")
	}
}

// TestWhoIsOvertakenHasNotTakenIt: of many clients that take a Lease at once, exactly one has it.
func TestWhoIsOvertakenHasNotTakenIt(t *testing.T) {
	w := newWorld(t, "overtaken")
	require.NoError(t, w.Take(t.Context(), w.machine(), "hosts"))
	w.now = instant.Add(11 * time.Minute)
	mine := w.lease()
	theirs := mine.DeepCopy()
	theirs.Spec.HolderIdentity, theirs.Spec.RenewTime = &otherHolder, ptr.To(metav1.NewMicroTime(w.now))
	_, err := w.Client.CoordinationV1().Leases(Namespace).Update(context.WithoutCancel(t.Context()), theirs, metav1.UpdateOptions{})
	require.NoError(t, err)
	w.fill(mine, w.node.Name, w.node.UID)
	require.ErrorIs(t, taking(mine, w.update(t.Context(), mine)), engine.ErrTaken)
	require.Equal(t, otherHolder, *w.lease().Spec.HolderIdentity)
}
