package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/selftest"
)

// TestTheSelfTestSucceedsOnlyWhereAlertsArrive: the ledger says so, and its last arrival is young.
func TestTheSelfTestSucceedsOnlyWhereAlertsArrive(t *testing.T) {
	saved := func(state selftest.State, arrived time.Time) *corev1.ConfigMap {
		l := ledger.Ledger{Arrival: arrived}
		l.Status.SelfTest = selftest.Result{State: state, Message: "as the leader says", Since: time.Now()}
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "drydock", Name: "ledger"}, Data: l.Encode()}
	}
	refused := ledger.Ledger{Arrival: time.Now()}
	refused.Status.SelfTest = selftest.Result{State: selftest.OK, Since: time.Now()}
	refused.Status.Denied = "ValidatingAdmissionPolicy 'other' denied request"
	aside := ledger.Ledger{Arrival: time.Now()}
	aside.Status.SelfTest = selftest.Result{State: selftest.OK, Since: time.Now()}
	aside.Status.Aside = "another Drydock is in charge of this cluster: other/drydock"
	for name, tc := range map[string]struct {
		ledger *corev1.ConfigMap
		ok     bool
		says   string
	}{
		"it arrives":                   {saved(selftest.OK, time.Now()), true, "ok, last arrival "},
		"Drydock's writes are refused": {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "drydock", Name: "ledger"}, Data: refused.Encode()}, false, "ValidatingAdmissionPolicy 'other'"},
		"another Drydock is in charge": {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "drydock", Name: "ledger"}, Data: aside.Encode()}, false, "another Drydock is in charge of this cluster"},
		"it is not routed":             {saved(selftest.Unrouted, time.Now()), false, "unrouted: as the leader says"},
		"nobody leads":                 {saved(selftest.OK, time.Now().Add(-time.Hour)), false, "check that a replica leads"},
		"nobody judged":                {saved("", time.Time{}), false, "the ledger has no result of the self-test yet"},
		"there is no ledger":           {nil, false, "the ledger cannot be read"},
		"it is not a ledger":           {&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "drydock", Name: "ledger"}, Data: map[string]string{"v": "99"}}, false, "the ledger cannot be understood"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []runtime.Object
			if tc.ledger != nil {
				objects = append(objects, tc.ledger)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			out := patient{stop: stop}
			err := awaitSelfTest(ctx, kube.LedgerStore{Client: fake.NewClientset(objects...), Namespace: "drydock", Name: "ledger"}, &out)
			require.Contains(t, out.String(), tc.says)
			if tc.ok {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "the self-test did not succeed in time; the last answer: ")
			require.ErrorContains(t, err, tc.says)
		})
	}
}

// patient waits for one answer, and no longer.
type patient struct {
	bytes.Buffer
	stop func()
}

func (p *patient) Write(b []byte) (int, error) {
	defer p.stop()
	return p.Buffer.Write(b)
}

func TestASelfTestWithoutAnAnswerSaysSo(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	err := awaitSelfTest(ctx, kube.LedgerStore{Client: fake.NewClientset(), Namespace: "drydock", Name: "ledger"}, &bytes.Buffer{})
	require.ErrorContains(t, err, "the API server gave no answer in time")
}

func TestWithoutASelfTestThereIsNothingToAwait(t *testing.T) {
	code, _, stderr := call(t, "selftest", "--config", write(t, "drydock.yaml", "apiVersion: drydock.dev/v1alpha1\nkind: Config\nreceiver: {tokenFile: token}\nalertmanager: {urls: [\"http://a:9093\"], selfTest: \"\"}\n"))
	require.Equal(t, cli.ExitFailed, code)
	require.Contains(t, stderr, "alertmanager.selfTest is empty")
}
