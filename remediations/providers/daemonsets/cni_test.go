package daemonsets_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/daemonsets"
)

const cniParts = `---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: cni, namespace: kube-system}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: cni-config, namespace: kube-system}
data: {mtu: "1450"}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: cni}
rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
`

// manifestOf is a CNI's manifest: its DaemonSet, and the objects that it needs.
func manifestOf(t *testing.T, image string) string {
	t.Helper()
	text, err := yaml.Marshal(daemonSet("cni", image))
	require.NoError(t, err)
	return string(text) + cniParts
}

func TestAManifestIsAppliedAgainButNeverAnOlderOne(t *testing.T) {
	l := newDaemonSets(t)
	client := l.Client()
	name := l.create(daemonSet("cni", "cni:v3.25.0"))
	file := filepath.Join(t.TempDir(), "cni.yaml")
	write := func(text string) { require.NoError(t, os.WriteFile(file, []byte(text), 0o600)) }
	bounded := l.only(
		[]rbacv1.PolicyRule{rule("rbac.authorization.k8s.io", "clusterroles", []string{"get"})},
		rule("apps", "daemonsets", []string{"get", "patch"}, name.Name), rule("", "serviceaccounts", []string{"create", "patch"}, "cni"),
		rule("", "configmaps", []string{"create", "patch"}, "cni-config"), rule("", "configmaps", []string{"get"}, "cni-manifest"),
	)
	cni := daemonsets.CNI{Client: bounded, File: file, DaemonSet: name}
	m := engine.Machine{Node: "node-0"}
	passedOver := func(why string) {
		t.Helper()
		s := cni.Survey(t.Context(), m)
		require.Contains(t, s.Trouble, why)
		require.False(t, s.Fleetwide)
		with := m
		with.Before = "{}"
		outcome, err := cni.Act(t.Context(), with, func() error { t.Fatal("nothing is about to be done"); return nil })
		require.ErrorContains(t, err, why)
		require.Equal(t, remediations.CallRefused, outcome)
	}
	config := func() (*corev1.ConfigMap, error) {
		return client.CoreV1().ConfigMaps("kube-system").Get(t.Context(), "cni-config", metav1.GetOptions{})
	}

	require.True(t, cni.Survey(t.Context(), m).Fleetwide, "a file that cannot be read concerns every node")
	write(manifestOf(t, "cni:v3.25.0"))
	passedOver("ClusterRole cni is not in the cluster, and Drydock does not create objects of that kind")
	require.NoError(t, l.Apply(t.Context(), []byte(strings.ReplaceAll(cniParts[strings.LastIndex(cniParts, "---"):], "[get]", "[get, list]"))))
	passedOver("ClusterRole cni differs from the manifest at rules[0].verbs")
	require.NoError(t, l.Apply(t.Context(), []byte(cniParts[strings.LastIndex(cniParts, "---"):])))
	write(manifestOf(t, "cni:v3.24.9"))
	passedOver("container cni has version 3.25.0 in the cluster and 3.24.9 in the manifest: Drydock never installs an older version")
	write(strings.Replace(manifestOf(t, "cni:v3.25.0"), "mtu: \"1450\"", "mtu: {}", 1))
	passedOver("the API server would refuse ConfigMap kube-system/cni-config")
	_, err := config()
	require.True(t, apierrors.IsNotFound(err), "trying is not doing")

	write(manifestOf(t, "cni:v3.25.0") + "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: other, namespace: kube-system}}\n")
	s := cni.Survey(t.Context(), m)
	require.Contains(t, s.Trouble, `configmaps "other" is forbidden`)
	require.True(t, s.Fleetwide, "rights concern every node")
	write(manifestOf(t, "cni:v3.25.0"))
	s = cni.Survey(t.Context(), m)
	require.Empty(t, s.Trouble)
	m.Before = s.Before
	outcome, err := cni.Act(t.Context(), m, func() error { return errors.New("it is silenced") })
	require.ErrorContains(t, err, "it is silenced")
	require.Equal(t, remediations.CallRefused, outcome)
	left := 2
	outcome, err = cni.Act(t.Context(), m, func() error {
		if left--; left < 0 {
			return errors.New("it was paused in mid-way")
		}
		return nil
	})
	require.ErrorContains(t, err, "after 2 of 3 objects: it was paused in mid-way")
	require.Equal(t, remediations.CallUnknown, outcome, "something was done")

	// Another client has broken it since: the same version repairs it.
	_, err = client.CoreV1().ConfigMaps("kube-system").Patch(t.Context(), "cni-config", types.MergePatchType, []byte(`{"data":{"mtu":"9000","own":"x"}}`), metav1.PatchOptions{FieldManager: "somebody"})
	require.NoError(t, err)
	same, pods := l.settled(name), l.pods(name, "node-1")
	outcome, err = cni.Act(t.Context(), m, still)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	found, err := config()
	require.NoError(t, err)
	require.Equal(t, map[string]string{"mtu": "1450", "own": "x"}, found.Data, "what the manifest does not name stays")
	require.Equal(t, same.Generation, l.settled(name).Generation)
	require.Equal(t, pods, l.pods(name, "node-1"), "of a DaemonSet that is as it should be no pod is touched")
	r, err := cni.Proven(t.Context(), s.Before)
	require.NoError(t, err)
	require.Empty(t, r.Missing)
	require.Contains(t, managersOf(l.settled(name)), "drydock")

	// A newer version, from a ConfigMap.
	_, err = client.CoreV1().ConfigMaps("kube-system").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "cni-manifest"}, Data: map[string]string{"cni.yaml": manifestOf(t, "cni:v3.26.0")}}, metav1.CreateOptions{})
	require.NoError(t, err)
	cni = daemonsets.CNI{Client: bounded, ConfigMap: types.NamespacedName{Namespace: "kube-system", Name: "cni-manifest"}, Key: "other.yaml", DaemonSet: name}
	passedOver("ConfigMap kube-system/cni-manifest has no key other.yaml")
	cni.Key = "cni.yaml"
	m.Before = ""
	s = cni.Survey(t.Context(), m)
	require.Empty(t, s.Trouble)
	r, err = cni.Proven(t.Context(), s.Before)
	require.NoError(t, err)
	require.Contains(t, r.Missing, "differs from the manifest")
	m.Before = s.Before
	outcome, err = cni.Act(t.Context(), m, still)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.Eventually(t, func() bool {
		r, err = cni.Proven(t.Context(), s.Before)
		return err == nil && r.Missing == ""
	}, 5*time.Minute, 100*time.Millisecond)
	require.Equal(t, "cni:v3.26.0", l.settled(name).Spec.Template.Spec.Containers[0].Image)
	outcome, err = cni.Act(t.Context(), m, still)
	require.ErrorContains(t, err, "has changed since the decision")
	require.Equal(t, remediations.CallRefused, outcome)

	// A person removed a DaemonSet that is gone, perhaps for another network.
	require.NoError(t, client.AppsV1().DaemonSets("kube-system").Delete(t.Context(), "cni", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		return strings.Contains(cni.Survey(t.Context(), m).Trouble, "DaemonSet kube-system/cni does not exist")
	}, 5*time.Minute, 50*time.Millisecond)
}

func managersOf(ds *appsv1.DaemonSet) []string {
	var out []string
	for _, f := range ds.ManagedFields {
		out = append(out, f.Manager)
	}
	return out
}
