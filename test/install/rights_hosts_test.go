package install

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestRightsOfDaemonSets: Drydock has them only in the configured namespaces, by name where RBAC
// allows names, and may write only if it enforces. It can never write anything that grants rights.
func TestRightsOfDaemonSets(t *testing.T) {
	with := func(mode string) m {
		return m{
			"cniObjects": m{"configmaps": []any{"calico-config"}},
			"config": m{"mode": mode, "providers": m{
				"daemonSets":  m{"kubeProxy": "kube-system/kube-proxy", "cni": "calico-system/calico-node"},
				"clusterWide": m{"rolloutRestart": []any{"kube-system/kube-proxy"}, "cni": m{"configMap": "calico-system/calico/manifest.yaml", "daemonSet": "calico-system/calico-node"}},
			}},
		}
	}
	rights := func(values m) (out []string) {
		for _, o := range objects(t, render(t, "drydock", values)) {
			if !strings.HasSuffix(o.GetName(), "-daemonsets") || o.GetKind() != "Role" {
				continue
			}
			var role rbacv1.Role
			find(t, []*unstructured.Unstructured{o}, "Role", o.GetName(), &role)
			for _, r := range role.Rules {
				out = append(out, fmt.Sprint(role.Namespace, " ", r.Resources, r.ResourceNames, r.Verbs))
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	// Drydock may read what the policies' witnesses need, and nothing more.
	shipped := []string{"kube-system [daemonsets] [cilium] [get]", "kube-system [daemonsets] [kube-proxy] [get]", "kube-system [pods] [] [list]"}
	require.Equal(t, shipped, rights(m{}))
	require.Equal(t, append([]string{"edge [daemonsets] [relay] [get]", "edge [pods] [] [list]"}, shipped...), rights(m{"config": m{"policies": []any{
		m{"name": "relay", "match": []any{`remediation="relay"`}, "witness": []any{m{"ready": false}, m{"daemonSetPod": m{"namespace": "edge", "name": "relay"}}}, "plan": []any{m{"step": "reboot"}}},
		m{"name": "alone", "match": []any{`remediation="alone"`}, "witness": "none", "plan": []any{m{"step": "reboot"}}},
	}}}))
	require.Equal(t, []string{
		"calico-system [configmaps] [calico-config] [get]", "calico-system [configmaps] [calico] [get]", "calico-system [daemonsets] [calico-node] [get]",
		"calico-system [pods] [] [list]", "calico-system [rolebindings roles] [] [get]",
		"kube-system [daemonsets] [cilium] [get]", "kube-system [daemonsets] [kube-proxy] [get]", "kube-system [pods] [] [list]",
	}, rights(with("observe")))
	require.Equal(t, []string{
		"calico-system [configmaps] [calico-config] [create get patch]", "calico-system [configmaps] [calico] [get]",
		"calico-system [daemonsets] [calico-node] [get patch]", "calico-system [daemonsets] [calico-node] [get]",
		"calico-system [pods] [] [delete list]", "calico-system [rolebindings roles] [] [get]",
		"kube-system [daemonsets] [cilium] [get]", "kube-system [daemonsets] [kube-proxy] [get patch]", "kube-system [daemonsets] [kube-proxy] [get]",
		"kube-system [pods] [] [delete list]", "kube-system [pods] [] [list]",
	}, rights(with("enforce")))
}
