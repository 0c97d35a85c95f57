package kubeapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
)

// TestADenialOfOneMachineIsNotAboutTheAccount: a webhook denies with HTTP 403, the same status as
// for a missing right.
func TestADenialOfOneMachineIsNotAboutTheAccount(t *testing.T) {
	c, err := New(Options{REST: &rest.Config{}, APIVersion: "cluster.x-k8s.io/v1beta2"})
	require.NoError(t, err)
	for message, account := range map[string]bool{
		`admission webhook "guard.example" denied the request: not this one`:  false,
		`machines.cluster.x-k8s.io "one" is forbidden: User "d" cannot patch`: true,
	} {
		own := &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Message: message}
		e := c.Sentence(c.Explain(Request{Method: "PATCH", Path: "machines/one"}, Answer{Answer: kit.Answer{Status: 403}, Own: own}), "asking")
		require.Equal(t, account, e.Is(engine.ErrAccount), message)
		require.Contains(t, e.Error(), "PATCH machines/one")
	}
}

// TestAnAPIServerThatIsBusyForASecondPasses: it asks the client to come again, and the engine does
// so if that is soon enough.
func TestAnAPIServerThatIsBusyForASecondPasses(t *testing.T) {
	c, err := New(Options{REST: &rest.Config{}, APIVersion: "cluster.x-k8s.io/v1beta2"})
	require.NoError(t, err)
	for again, passes := range map[time.Duration]bool{0: true, time.Second: true, 90 * time.Second: false} {
		busy := &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusTooManyRequests, Message: "too many requests"}
		e := c.Sentence(c.Explain(Request{Method: "GET", Path: "machines/one"}, Answer{Answer: kit.Answer{Status: 429, Again: again}, Own: busy}), "asking")
		require.Equal(t, passes, e.Is(engine.ErrPassing), again)
	}
}

// TestWhereObjectsAre, by their group and namespace.
func TestWhereObjectsAre(t *testing.T) {
	c, err := New(Options{REST: &rest.Config{}, APIVersion: "cluster.x-k8s.io/v1beta2", Namespace: "capi"})
	require.NoError(t, err)
	require.Equal(t, "apis/cluster.x-k8s.io/v1beta2/namespaces/capi", c.place())
	require.Equal(t, "apis/policy/v1", c.Of("policy/v1").place())
	require.Equal(t, "api/v1", c.Of("v1").place())
}
