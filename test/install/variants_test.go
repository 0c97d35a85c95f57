package install

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/lab"
)

// fullname returns the name that the objects of a variant's release have.
func fullname(release string, values m) string {
	if name, ok := values["fullnameOverride"].(string); ok {
		return name
	}
	if name, ok := values["nameOverride"].(string); ok {
		return release + "-" + name
	}
	return release
}

// TestEveryVariantInstalls with the real Helm, which must print no warning. The API server accepts
// all objects, Drydock accepts its configuration, and the pods fit the strictest Pod Security
// Standard.
func TestEveryVariantInstalls(t *testing.T) {
	l := cluster(t)
	for release, values := range variants(t) {
		t.Run(release, func(t *testing.T) {
			manifests := render(t, release, values)
			namespace(t, l, release)
			t.Cleanup(func() { sweep(t, l, release) })
			args := []string{"install", release, filepath.Join(root(t), "charts", "drydock"), "--namespace", release, "--no-hooks", "-f", ci(t, release)}
			if strings.HasPrefix(release, "example-") {
				args = append(args, "--set", "monitoring.labels.release=kube-prometheus-stack")
			}
			_, warnings, err := try(t, l, "helm", args...)
			require.NoError(t, err, warnings)
			require.Empty(t, warnings, "who installs cannot act on it")

			text, err := lab.RenderedConfig(manifests)
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "drydock.yaml")
			require.NoError(t, os.WriteFile(file, text, 0o600))
			c, _, err := config.Load(file, config.Options{SkipFiles: true})
			require.NoError(t, err, "%s", text)
			require.Equal(t, release, c.Ledger.Namespace)
			require.Equal(t, release, c.LeaderElection.Lease.Namespace)

			d, err := l.Client().AppsV1().Deployments(release).Get(t.Context(), fullname(release, values), metav1.GetOptions{})
			require.NoError(t, err)
			for _, name := range regexp.MustCompile(`/etc/drydock/\S+`).FindAllString(string(text), -1) {
				require.Contains(t, mounted(d), name, "the configuration names a file that no pod has")
			}
			isAdmitted(t, l, d.ObjectMeta, d.Spec.Template)
			if agent, _ := values["agent"].(m); agent["enabled"] == true {
				ds, err := l.Client().AppsV1().DaemonSets(release).Get(t.Context(), fullname(release, values)+"-agent", metav1.GetOptions{})
				require.NoError(t, err)
				isAdmitted(t, l, ds.ObjectMeta, ds.Spec.Template)
			}
		})
	}
}

// mounted returns the files that the pods mount.
func mounted(d *appsv1.Deployment) []string {
	var out []string
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Projected == nil {
			continue
		}
		for _, s := range v.Projected.Sources {
			if s.ConfigMap != nil {
				out = append(out, "/etc/drydock/"+s.ConfigMap.Items[0].Path)
			}
			if s.Secret != nil {
				for _, item := range s.Secret.Items {
					out = append(out, "/etc/drydock/"+item.Path)
				}
			}
		}
	}
	return out
}

// isAdmitted creates a pod as its controller would. The control: a pod with more privileges is
// refused.
func isAdmitted(t *testing.T, l *lab.Lab, owner metav1.ObjectMeta, template corev1.PodTemplateSpec) {
	t.Helper()
	pods := l.Client().CoreV1().Pods(owner.Namespace)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: owner.Name + "-", Labels: template.Labels, Annotations: template.Annotations},
		Spec:       *template.Spec.DeepCopy(),
	}
	count(t, l, owner.Namespace)
	var made *corev1.Pod
	var err error
	require.Eventually(t, func() bool { // the API server may not have read the quota's new status yet
		made, err = pods.Create(t.Context(), pod, metav1.CreateOptions{})
		return err == nil || !strings.Contains(err.Error(), "status unknown for quota")
	}, lab.Patience, 50*time.Millisecond)
	require.NoError(t, err)
	require.NoError(t, pods.Delete(t.Context(), made.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))

	pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
	pod.Spec.Containers[0].SecurityContext.Privileged = ptr.To(true)
	_, err = pods.Create(t.Context(), pod, metav1.CreateOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, `violates PodSecurity "restricted`)
}

// count does what kube-controller-manager does for a new ResourceQuota, because this lab has no
// such controller. Until a quota is counted, the API server admits no pod that it applies to.
func count(t *testing.T, l *lab.Lab, namespace string) {
	t.Helper()
	quotas := l.Client().CoreV1().ResourceQuotas(namespace)
	all, err := quotas.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, q := range all.Items {
		if q.Status.Hard != nil {
			continue
		}
		q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}
		_, err := quotas.UpdateStatus(t.Context(), &q, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
}

// TestTheNamespaceMayHavePodsOfASystemPriority: some API servers, as GKE's, admit such pods only in
// a namespace with a matching ResourceQuota. The control: without the chart's quota no pod is
// admitted, and with another priority no quota is needed.
func TestTheNamespaceMayHavePodsOfASystemPriority(t *testing.T) {
	l := cluster(t)
	const release = "prioritised"
	namespace(t, l, release)
	values := m{"resourceQuota": m{"enabled": false}}
	apply(t, l, release, render(t, release, values))
	pods := func() error {
		d, err := l.Client().AppsV1().Deployments(release).Get(t.Context(), release, metav1.GetOptions{})
		require.NoError(t, err)
		count(t, l, release)
		template := d.Spec.Template
		_, err = l.Client().CoreV1().Pods(release).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{GenerateName: release + "-", Labels: template.Labels}, Spec: template.Spec,
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	require.ErrorContains(t, pods(), "insufficient quota to match these scopes: [{PriorityClass In [system-node-critical system-cluster-critical]}]")
	require.NoError(t, l.Apply(t.Context(), []byte(render(t, release, nil)["drydock/templates/resourcequota.yaml"])))
	await(t, "the quota", func() bool { return pods() == nil })

	classes := func(of string, values m) (out []string) {
		var q corev1.ResourceQuota
		for _, o := range objects(t, render(t, of, values)) {
			if o.GetKind() == "ResourceQuota" {
				find(t, []*unstructured.Unstructured{o}, "ResourceQuota", of, &q)
				out = q.Spec.ScopeSelector.MatchExpressions[0].Values
			}
		}
		return out
	}
	require.Equal(t, []string{"system-cluster-critical"}, classes("drydock", nil))
	require.Equal(t, []string{"system-cluster-critical", "system-node-critical"}, classes("drydock", m{"agent": m{"enabled": true}}))
	require.Equal(t, []string{"system-node-critical"}, classes("drydock", m{"priorityClassName": "own", "agent": m{"enabled": true}}))
	require.Equal(t, []string{"system-node-critical"}, classes("drydock", m{"priorityClassName": "system-node-critical", "agent": m{"enabled": true}}), "each once")
	for _, own := range []string{"", "own"} {
		require.Empty(t, classes("drydock", m{"priorityClassName": own}), own)
	}
	require.Empty(t, classes("kube-system", nil), "the cluster's own namespace")
	require.Empty(t, classes("drydock", values))
}

// TestPodsOutliveTheirNodes: the chart has what keeps two pods running, and one of them leading,
// while nodes fail.
func TestPodsOutliveTheirNodes(t *testing.T) {
	var d appsv1.Deployment
	find(t, objects(t, render(t, "drydock", nil)), "Deployment", "drydock", &d)
	require.EqualValues(t, 2, *d.Spec.Replicas)
	spec := d.Spec.Template.Spec
	require.Equal(t, "system-cluster-critical", spec.PriorityClassName)
	require.Equal(t, corev1.LabelHostname, spec.TopologySpreadConstraints[0].TopologyKey)
	require.Equal(t, corev1.DoNotSchedule, spec.TopologySpreadConstraints[0].WhenUnsatisfiable)
	require.Greater(t, *spec.TerminationGracePeriodSeconds, int64(8), "Drydock's own stop takes that long")
	require.Equal(t, "GOMEMLIMIT", spec.Containers[0].Env[0].Name)
	require.Equal(t, "limits.memory", spec.Containers[0].Env[0].ValueFrom.ResourceFieldRef.Resource)
	require.Equal(t, "/healthz", spec.Containers[0].LivenessProbe.HTTPGet.Path)
	require.Equal(t, "/readyz", spec.Containers[0].ReadinessProbe.HTTPGet.Path)
}

// TestAChangeOfTheConfigurationRollsThePods. Nothing else does.
func TestAChangeOfTheConfigurationRollsThePods(t *testing.T) {
	template := func(values m) corev1.PodTemplateSpec {
		var d appsv1.Deployment
		find(t, objects(t, render(t, "drydock", values)), "Deployment", "drydock", &d)
		return d.Spec.Template
	}
	same := func(values m) bool { return reflect.DeepEqual(template(nil), template(values)) }
	require.True(t, same(m{"networkPolicy": m{"enabled": false}}))
	require.False(t, same(m{"config": m{"limits": m{"concurrent": 2}}}))
}

// TestSecretsAreOnlyNamed: no rendering contains a secret. If the values name no Secret for the
// token and for the agents' key, the chart creates them without data. Drydock writes their data,
// and has the right to write only these two.
func TestSecretsAreOnlyNamed(t *testing.T) {
	for release, values := range variants(t) {
		var made []string
		for _, o := range objects(t, render(t, release, values)) {
			if o.GetKind() != "Secret" {
				continue
			}
			require.NotContains(t, o.Object, "data", "%s: Secret %s", release, o.GetName())
			require.NotContains(t, o.Object, "stringData", "%s: Secret %s", release, o.GetName())
			made = append(made, o.GetName())
		}
		agent, _ := values["agent"].(m)
		for _, of := range []struct {
			suffix, value string
			unneeded      bool
		}{{"-token", "receiverToken", release == "minimal" || release == "mutual-tls"}, {"-agent-key", "agentKey", agent["enabled"] != true}} {
			secrets, _ := values["secrets"].(map[string]any)
			named, _ := secrets[of.value].(map[string]any)
			name := fullname(release, values) + of.suffix
			if of.unneeded || named["name"] != nil {
				require.NotContains(t, made, name, release)
				continue
			}
			require.Contains(t, made, name, release)
		}
	}
}
