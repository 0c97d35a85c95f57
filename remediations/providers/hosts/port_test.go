package hosts

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/rescue"
)

// nodes has at most one Node.
type nodes struct{ n *corev1.Node }

func (n nodes) Get(context.Context, string, metav1.GetOptions) (*corev1.Node, error) {
	if n.n == nil {
		return nil, errors.New("the API server does not answer")
	}
	return n.n, nil
}

// TestWhatAnActuatorMakesOfAHost: refused only if no restart was sent; and an obstacle that the
// survey finds costs no attempt.
func TestWhatAnActuatorMakesOfAHost(t *testing.T) {
	t.Parallel()
	node := func() *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "cp-1", UID: "u1"},
			Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}},
		}
	}
	for name, tc := range map[string]struct {
		change  func(s *site, u *Unit, m *engine.Machine)
		may     error
		outcome remediations.CallOutcome
		trouble bool
		again   bool // soon
		busy    bool
		// fleetwide: the trouble is not about this machine.
		fleetwide bool
	}{
		"it is restarted":         {outcome: remediations.CallAccepted},
		"the step names the unit": {change: func(_ *site, u *Unit, m *engine.Machine) { u.Name, m.Unit = "", "kubelet.service" }, outcome: remediations.CallAccepted},
		"withheld":                {may: errors.New("paused"), outcome: remediations.CallRefused},
		"the Node cannot be read": {change: func(_ *site, u *Unit, _ *engine.Machine) { u.Nodes = nodes{} }, outcome: remediations.CallRefused, trouble: true, again: true, fleetwide: true},
		"the Node is another one": {change: func(_ *site, _ *Unit, m *engine.Machine) { m.UID = "u0" }, outcome: remediations.CallRefused, trouble: true, again: true},
		"the unit is masked":      {change: func(s *site, _ *Unit, _ *engine.Machine) { s.set(func() { s.load = "masked" }) }, outcome: remediations.CallRefused, trouble: true},
		"another attempt is at it": {
			change: func(s *site, _ *Unit, _ *engine.Machine) { s.set(func() { s.restarting = "first-1-1" }) }, outcome: remediations.CallRefused, busy: true,
		},
		"the connection is cut after the command": {
			change: func(s *site, _ *Unit, _ *engine.Machine) { s.setWrong(func() { s.cuts, s.cutsLeft = atCommand, 99 }) }, outcome: remediations.CallUnknown, trouble: true, again: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			cut := tc.outcome == remediations.CallUnknown
			if cut {
				s.options.Timeout = patience
			}
			u, m := Unit{Machines{s.client(t), nodes{node()}, []corev1.NodeAddressType{corev1.NodeInternalIP}}, "kubelet.service"}, engine.Machine{Node: "cp-1", UID: "u1", Attempt: "abcdef-0-1"}
			if tc.change != nil && !cut {
				tc.change(s, &u, &m)
			}
			if !cut {
				v := u.Survey(t.Context(), m)
				require.Equal(t, tc.trouble, v.Trouble != "", v.Trouble)
				require.Equal(t, tc.fleetwide, v.Fleetwide, "the API server is not this machine")
				if tc.trouble {
					require.Equal(t, tc.again, v.Again == remediations.AskPassing, v.Trouble)
				} else {
					require.Contains(t, v.Evidence, "it is stuck")
				}
			}
			outcome, err := u.Act(t.Context(), m, func() error {
				if cut {
					tc.change(s, &u, &m)
				}
				return tc.may
			})
			require.Equal(t, tc.outcome, outcome, "%v", err)
			require.Equal(t, outcome == remediations.CallAccepted, err == nil)
			require.Equal(t, tc.busy, errors.Is(err, rescue.ErrBusy))
			if outcome == remediations.CallRefused {
				require.Empty(t, s.attempts())
			}
		})
	}
}

// reads is a Nodes that answers with the function.
type reads func(ctx context.Context) (*corev1.Node, error)

func (r reads) Get(ctx context.Context, _ string, _ metav1.GetOptions) (*corev1.Node, error) {
	return r(ctx)
}

// TestANodeThatCannotBeReadMayBeReadAgain: the error shows the engine which refusals may pass in a
// moment, in time for another try.
func TestANodeThatCannotBeReadMayBeReadAgain(t *testing.T) {
	t.Parallel()
	of := schema.GroupResource{Resource: "nodes"}
	for name, c := range map[string]struct {
		answers reads
		passes  bool
	}{
		"no answer": {func(ctx context.Context) (*corev1.Node, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, true},
		"an error": {func(context.Context) (*corev1.Node, error) {
			return nil, apierrors.NewInternalError(errors.New("etcd"))
		}, true},
		"it is gone": {func(context.Context) (*corev1.Node, error) { return nil, apierrors.NewNotFound(of, "cp-1") }, false},
		"no right to read it": {func(context.Context) (*corev1.Node, error) {
			return nil, apierrors.NewForbidden(of, "cp-1", errors.New("no"))
		}, false},
		"it is another one": {func(context.Context) (*corev1.Node, error) { return &corev1.Node{}, nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			machines := Machines{s.client(t), c.answers, []corev1.NodeAddressType{corev1.NodeInternalIP}}
			m := engine.Machine{Node: "cp-1", UID: "u1", Attempt: "abcdef-0-1"}
			ctx := t.Context()
			for _, actuator := range []engine.Actuator{Unit{machines, "kubelet.service"}, Rebooter{machines, Clean}} {
				outcome, err := actuator.Act(ctx, m, func() error { return nil })
				require.Equal(t, remediations.CallRefused, outcome)
				require.Equal(t, c.passes, errors.Is(err, engine.ErrPassing), "%v", err)
				require.NoError(t, ctx.Err())
			}
			require.Empty(t, s.attempts())
		})
	}
}
