package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// TestPodsAreLookedUpInTheProvidersNamespacesAlone: the chart gives rights in no other.
func TestPodsAreLookedUpInTheProvidersNamespacesAlone(t *testing.T) {
	for name, c := range map[string]struct {
		providers string
		want      map[string]string
	}{
		"one provider":               {"[{name: sei, namespaces: [sei]}]", map[string]string{"sei": "n1", "sei-2": "", "dev": ""}},
		"two providers":              {"[{name: sei, namespaces: [sei]}, {name: two, namespaces: [sei-2], SHAPE}]", map[string]string{"sei": "n1", "sei-2": "n1", "dev": ""}},
		"one of them for everywhere": {"[{name: sei, namespaces: [sei]}, {name: two, SHAPE}]", map[string]string{"sei": "n1", "sei-2": "n1", "dev": "n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			const shape = `selector: {matchLabels: {app: two}}, port: api, health: {path: /healthz}, approve: {path: /tasks, body: "{}"}`
			providers := strings.Replace(c.providers, "SHAPE", shape, 1)
			cfg, _, err := config.Load(write(t, "config.yaml", sound+"\nproviders: {sidecars: "+providers+"}\n"), config.Options{SkipFiles: true})
			require.NoError(t, err)
			clients := fake.NewClientset()
			for namespace := range c.want {
				require.NoError(t, clients.Tracker().Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a-0"}, Spec: corev1.PodSpec{NodeName: "n1"}}))
			}
			var o engine.Options
			carrier, err := joinSidecars(&joined{program: &program{cfg: cfg, clients: clients, writes: &rest.Config{}}}, &o)
			require.NoError(t, err)
			for namespace, want := range c.want {
				node, err := carrier(t.Context(), "", namespace+"/a-0")
				require.NoError(t, err)
				require.Equal(t, want, node, "a post about namespace %s", namespace)
				node, err = o.Sidecars.Hosts(t.Context(), remediations.Pod{Namespace: namespace, Name: "a-0"})
				require.NoError(t, err)
				require.Equal(t, want, node, "a poll about namespace %s", namespace)
			}
		})
	}
}
