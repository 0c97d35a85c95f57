package install

import (
	"net/http"
	"testing"
	"time"

	"drydock.dev/drydock/internal/lab"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestTheLeaseDoesNotQueueWithTheRest: the API server's answers name the flow schema of the
// request.
func TestTheLeaseDoesNotQueueWithTheRest(t *testing.T) {
	l := cluster(t)
	const release = "flows"
	namespace(t, l, release)
	apply(t, l, release, render(t, release, variants(t)["flowschema"]))
	drydock := l.ConfigAs("system:serviceaccount:"+release+":"+release, "system:serviceaccounts", "system:authenticated")
	client, err := rest.HTTPClientFor(drydock)
	require.NoError(t, err)
	inFlow := func(path, schema, level string) func() bool {
		s, err := l.Client().FlowcontrolV1().FlowSchemas().Get(t.Context(), schema, metav1.GetOptions{})
		require.NoError(t, err)
		p, err := l.Client().FlowcontrolV1().PriorityLevelConfigurations().Get(t.Context(), level, metav1.GetOptions{})
		require.NoError(t, err)
		return func() bool {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, l.APIServerURL()+path, nil)
			require.NoError(t, err)
			res, err := client.Do(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			return res.Header.Get("X-Kubernetes-Pf-Flowschema-Uid") == string(s.UID) &&
				res.Header.Get("X-Kubernetes-Pf-Prioritylevel-Uid") == string(p.UID)
		}
	}
	require.Eventually(t, inFlow("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/drydock", release+"-lease", "leader-election"), lab.Patience, 100*time.Millisecond)
	lease := "/apis/coordination.k8s.io/v1/namespaces/" + release + "/leases/drydock"
	require.Eventually(t, inFlow(lease, release+"-lease", "leader-election"), lab.Patience, 100*time.Millisecond)
	require.Eventually(t, inFlow("/api/v1/nodes", release, release), lab.Patience, 100*time.Millisecond)
	require.Eventually(t, inFlow("/api/v1/namespaces/"+release+"/configmaps/drydock-ledger", release, release), lab.Patience, 100*time.Millisecond)
}
