// Package clusterapi tests the real Drydock beside Cluster API's own controllers in the lab.
package clusterapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/test/owners"
)

// m is a part of a configuration file.
type m = map[string]any

func TestMain(t *testing.M) { lab.Main(t, owners.Options()) }

var (
	once  sync.Once
	capi  *lab.ClusterAPI
	token string
)

// newEnv creates a MachineSet with two Machines. If checked is true, it also creates a
// MachineHealthCheck.
func newEnv(t *testing.T, set string, checked bool) *owners.Env {
	t.Helper()
	l := lab.Shared(t)
	providers := m{"clusterAPI": m{"cluster": lab.ClusterAPINamespace + "/" + lab.ClusterAPICluster, "timeout": "1m"}}
	once.Do(func() {
		ctx := context.WithoutCancel(t.Context())
		var err error
		capi, err = l.StartClusterAPI(ctx)
		require.NoError(t, err)
		token, err = l.PrepareDrydockWith(ctx, m{
			"admission": m{"webhook": m{"enabled": false}}, // the policy alone
			"config":    m{"mode": "enforce", "providers": providers},
		})
		require.NoError(t, err)
	})
	require.NotEmpty(t, token, "Cluster API did not start")
	e := &owners.Env{
		T: t, Lab: l, Token: token, Providers: providers,
		Mine: func(n *corev1.Node) bool { return strings.HasPrefix(n.Name, set+"-") },
		Object: func(node string) string {
			one, err := capi.Dynamic.Resource(lab.CAPIMachines).Namespace(lab.ClusterAPINamespace).Get(t.Context(), node, metav1.GetOptions{})
			require.NoError(t, err)
			return string(one.GetUID())
		},
		Requests: func(r *http.Request) bool {
			return r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/namespaces/"+lab.ClusterAPINamespace+"/machines/") &&
				(checked || strings.HasSuffix(r.URL.Path, "/status")) // a request by conditions is preceded by a label
		},
		Asked: func(attempt string) []string {
			if checked {
				return []string{"annotated by " + attempt, "deleted"}
			}
			return []string{"Drydock asks for a replacement, attempt " + attempt, "deleted"}
		},
		Seen: owners.Watch(t, capi.Dynamic, lab.CAPIMachines, lab.ClusterAPINamespace, "set="+set, asked),
	}
	var err error
	e.Nodes, err = capi.AddMachines(t.Context(), set, 2, checked)
	require.NoError(t, err)
	for _, name := range e.Nodes {
		e.Eventually(func() bool { return owners.Well(e.Node(name)) }, "Node %s is Ready", name)
	}
	return e
}

// skips is the annotation that keeps a MachineHealthCheck away from a Machine.
const skips = "cluster.x-k8s.io/skip-remediation"

// kept returns the result of asked for a Machine whose MachineHealthCheck an attempt has kept away.
func kept(attempt string) string { return "kept from its MachineHealthCheck by " + attempt }

// finds makes the MachineHealthCheck treat a Machine as unhealthy whose Node is not Ready for that
// long.
func finds(t *testing.T, check string, seconds int) {
	t.Helper()
	checks := capi.Dynamic.Resource(schema.GroupVersionResource{Group: lab.CAPIMachines.Group, Version: lab.CAPIMachines.Version, Resource: "machinehealthchecks"})
	_, err := checks.Namespace(lab.ClusterAPINamespace).Patch(t.Context(), check, types.MergePatchType, fmt.Appendf(nil,
		`{"spec":{"checks":{"unhealthyNodeConditions":[{"type":"Ready","status":"False","timeoutSeconds":%[1]d},{"type":"Ready","status":"Unknown","timeoutSeconds":%[1]d}]}}}`, seconds), metav1.PatchOptions{})
	require.NoError(t, err)
}

// asked returns what the Machine shows about requests: the attempts, and whether it was deleted.
func asked(one *unstructured.Unstructured) (all []string) {
	if value, there := one.GetAnnotations()["cluster.x-k8s.io/remediate-machine"]; there {
		all = append(all, "annotated by "+value)
	}
	if value, there := one.GetAnnotations()[skips]; there {
		all = append(all, kept(owners.FirstNamed(value)))
	}
	if value, there := one.GetAnnotations()["machine.cluster.x-k8s.io/exclude-node-draining"]; there {
		all = append(all, "not drained again for "+value)
	}
	if one.GetDeletionTimestamp() != nil {
		all = append(all, "deleted")
	}
	conditions, _, _ := unstructured.NestedSlice(one.Object, "status", "conditions")
	for _, c := range conditions {
		if said, _, _ := unstructured.NestedString(c.(m), "message"); c.(m)["type"] == "HealthCheckSucceeded" && strings.HasPrefix(said, "Drydock ") {
			all = append(all, said)
		}
	}
	return all
}
