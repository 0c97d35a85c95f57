package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/kube"
)

var nodeGroup = corev1.SchemeGroupVersion.WithResource("nodes").GroupResource()

func byPolicy(name string) error {
	return apierrors.NewForbidden(nodeGroup, name, errors.New("ValidatingAdmissionPolicy 'other' with binding 'other' denied request: Only Drydock writes these annotations"))
}

func full(name string) error {
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), name, field.ErrorList{
		field.TooLong(field.NewPath("metadata", "annotations"), "", 262144)})
}

// door is an API server that answers PATCHes of Nodes with these answers, and records them.
type door struct {
	mu      sync.Mutex
	answers func(node, body string) error
	sent    []clienttesting.PatchActionImpl
}

func (d *door) set(answers func(node, body string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.answers = answers
}

func (d *door) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.sent)
}

// pathOver returns a WritePath for a cluster with n Nodes and with these policies.
func pathOver(n int, policies ...*remediations.Policy) (*kube.WritePath, *door) {
	d := &door{answers: func(string, string) error { return nil }}
	client := fake.NewClientset()
	client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		p := a.(clienttesting.PatchActionImpl)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.sent = append(d.sent, p)
		return true, &corev1.Node{}, d.answers(p.Name, string(p.Patch))
	})
	nodes := make([]*corev1.Node, n)
	for i := range nodes {
		nodes[i] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), UID: types.UID(fmt.Sprint("uid-", i))}}
	}
	all := func(context.Context) ([]*corev1.Node, error) { return nodes, nil }
	return kube.NewWritePath(client, all, &remediations.Config{Policies: policies}, func(int) int { return 0 }, clock.RealClock{}, logr.Discard()), d
}

// TestARefusalOfTheClusterIsDistinguishedFromOneOfANode: the message names what refuses the write.
// Every write to the API server is a dry run.
func TestARefusalOfTheClusterIsDistinguishedFromOneOfANode(t *testing.T) {
	unavailable := apierrors.NewServiceUnavailable("away")
	for name, tc := range map[string]struct {
		answers func(node string) error
		says    []string
	}{
		"the API server takes the write":          {answers: func(string) error { return nil }},
		"a policy denies the write on every Node": {answers: byPolicy, says: []string{"Drydock's own annotations and labels", "ValidatingAdmissionPolicy 'other'", "(dry run on n0, n1, n2)"}},
		"a webhook that must answer does not": {answers: func(string) error {
			return apierrors.NewInternalError(errors.New(`failed calling webhook "x.example.com"`))
		}, says: []string{`webhook "x.example.com"`}},
		"a webhook denies Drydock's keys": {answers: func(n string) error {
			return apierrors.NewForbidden(nodeGroup, n, errors.New(`admission webhook "nodes.example.com" denied the request: annotations come from Git alone`))
		}, says: []string{`admission webhook "nodes.example.com"`, "(dry run on n0, n1, n2)"}},
		"the right to patch Nodes is missing": {answers: func(n string) error {
			return apierrors.NewForbidden(nodeGroup, n, errors.New("User drydock cannot patch resource nodes"))
		}, says: []string{"cannot patch resource nodes"}},
		"a policy denies the write on one Node":        {answers: func(n string) error { return map[string]error{"n0": byPolicy("n0")}[n] }},
		"the annotations of every Node asked are full": {answers: full},
		"one Node is full and the others refuse": {answers: func(n string) error {
			return map[string]error{"n0": full("n0"), "n1": byPolicy("n1"), "n2": byPolicy("n2")}[n]
		}, says: []string{"(dry run on n1, n2)"}},
		"the API server cannot answer just now":    {answers: func(string) error { return unavailable }},
		"a webhook does not take part in dry runs": {answers: func(string) error { return apierrors.NewBadRequest(`admission webhook "w" does not support dry run`) }},
		"the connection is cut":                    {answers: func(string) error { return errors.New("connection refused") }},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := pathOver(5)
			d.set(func(node, _ string) error { return tc.answers(node) })
			w.Try(t.Context())
			if len(tc.says) == 0 {
				require.Empty(t, w.Known().Denied)
			}
			for _, says := range tc.says {
				require.Contains(t, w.Known().Denied, says)
			}
			require.NotEmpty(t, d.sent)
			for _, p := range d.sent {
				require.Equal(t, []string{metav1.DryRunAll}, p.PatchOptions.DryRun)
			}
			d.set(func(string, string) error { return nil })
			w.Try(t.Context())
			require.Empty(t, w.Known().Denied, "the API server takes the write again")
		})
	}
}

// TestAnAnswerThatSaysNothingChangesNothing: a refusal counts until the API server accepts the
// write.
func TestAnAnswerThatSaysNothingChangesNothing(t *testing.T) {
	w, d := pathOver(5)
	d.set(func(node, _ string) error { return byPolicy(node) })
	w.Try(t.Context())
	d.set(func(string, string) error { return apierrors.NewTooManyRequests("later", 1) })
	w.Try(t.Context())
	require.Contains(t, w.Known().Denied, "'other'")
}

// TestTheOtherWritesOnNodesAreTriedWherePoliciesNeedThem: if they are refused, only the steps that
// need them are affected, and no repair is held.
func TestTheOtherWritesOnNodesAreTriedWherePoliciesNeedThem(t *testing.T) {
	refused := func(_, body string) error {
		if body == `{"metadata":{"uid":"uid-0"},"spec":{"unschedulable":true}}` {
			return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: `admission webhook "cordons.example.com" denied the request`}}
		}
		return nil
	}
	for name, tc := range map[string]struct {
		policy remediations.Policy
		want   int
	}{
		"a policy that cordons":         {remediations.Policy{Kind: remediations.KindNode, Mode: remediations.ModeEnforce, CordonExhausted: true}, 1},
		"a policy that only observes":   {remediations.Policy{Kind: remediations.KindNode, Mode: remediations.ModeObserve, CordonExhausted: true}, 0},
		"a policy that does not cordon": {remediations.Policy{Kind: remediations.KindNode, Mode: remediations.ModeEnforce}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, d := pathOver(1, &tc.policy)
			d.set(refused)
			w.Try(t.Context())
			require.Empty(t, w.Known().Denied)
			require.Len(t, w.Known().Limited, tc.want)
			for _, says := range w.Known().Limited {
				require.Contains(t, says, "cordons.example.com")
			}
		})
	}
}

// TestDryRunsAreSeldom: there is one at the start and one every five minutes. After a doubt or a
// refusal the next one comes soon, but never more than one in 30 s.
func TestDryRunsAreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, d := pathOver(1)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Start(ctx) }()
		time.Sleep(time.Second)
		require.Equal(t, 1, d.count(), "at the start")
		time.Sleep(10 * time.Minute)
		require.Equal(t, 3, d.count())
		for range 60 {
			w.Doubt()
			time.Sleep(time.Second)
		}
		require.LessOrEqual(t, d.count(), 6)
		require.GreaterOrEqual(t, d.count(), 4, "a doubt asks")
		d.set(func(node, _ string) error { return byPolicy(node) })
		w.Doubt()
		time.Sleep(time.Minute)
		require.NotEmpty(t, w.Known().Denied)
		d.set(func(string, string) error { return nil })
		time.Sleep(31 * time.Second)
		require.Empty(t, w.Known().Denied)
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestAWriteThatIsRefusedIsRememberedWithItsNode, until the Node accepts a write or is gone, or
// nothing is written on it any more.
func TestAWriteThatIsRefusedIsRememberedWithItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := pathOver(1)
		var answer error
		write := w.Watching(func(context.Context, string, types.UID, map[string]*string) error { return answer })
		began := time.Now()
		for _, answer = range []error{byPolicy("n0"), full("n0")} {
			require.Error(t, write(t.Context(), "n0", "", nil))
			time.Sleep(time.Minute)
		}
		require.Equal(t, began, w.Known().Refused["n0"].Since)
		require.Contains(t, w.Known().Refused["n0"].Why, "Too long", "the last answer")
		for _, over := range []error{nil, intake.ErrGone} {
			answer = byPolicy("n0")
			require.Error(t, write(t.Context(), "n0", "", nil))
			require.Len(t, w.Known().Refused, 1)
			answer = over
			_ = write(t.Context(), "n0", "", nil)
			require.Empty(t, w.Known().Refused)
		}
		answer = byPolicy("n0")
		require.Error(t, write(t.Context(), "n0", "", nil))
		time.Sleep(3 * time.Minute)
		require.Empty(t, w.Known().Refused, "nothing is written any more")
	})
}
