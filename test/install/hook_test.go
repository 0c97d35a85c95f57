package install

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/lab"
)

// hook returns the objects that Helm creates before an install or an upgrade.
func hook(t *testing.T, args ...string) []*unstructured.Unstructured {
	t.Helper()
	text := helmAlone(t, append([]string{"template", "drydock", filepath.Join(root(t), "charts", "drydock"), "--namespace", "drydock", "--show-only", "templates/hooks/check.yaml"}, args...)...)
	return objects(t, map[string]string{"check.yaml": text})
}

// TestHelmChecksTheConfigurationFirst: a Job runs `drydock check` on the configuration of the pods.
// It has no rights, and fits the strictest Pod Security Standard. It also finds faults that the
// schema cannot find: an invalid regular expression, or a step that does not exist.
func TestHelmChecksTheConfigurationFirst(t *testing.T) {
	l := cluster(t)
	faulty := func(policies string) (*batchv1.Job, error) {
		all := hook(t, "--set-json", "config.policies="+policies, "--set-json", `global.imagePullSecrets=["of-the-parent"]`)
		var checked corev1.ConfigMap
		find(t, all, "ConfigMap", "drydock-check", &checked)
		var job batchv1.Job
		find(t, all, "Job", "drydock-check", &job)
		for _, o := range all {
			require.Equal(t, "pre-upgrade", o.GetAnnotations()["helm.sh/hook"])
		}
		_, _, err := config.Read(strings.NewReader(checked.Data["drydock.yaml"]), config.Options{SkipFiles: true})
		return &job, err
	}
	job, err := faulty(`[{"name":"mine","match":["remediation=\"mine\""],"plan":[{"step":"reboot"}]}]`)
	require.NoError(t, err)
	pod := job.Spec.Template
	require.Equal(t, []string{"check", "--skip-files", "/etc/drydock/config/drydock.yaml"}, pod.Spec.Containers[0].Args)
	require.Equal(t, []corev1.LocalObjectReference{{Name: "of-the-parent"}}, pod.Spec.ImagePullSecrets)
	require.False(t, *pod.Spec.AutomountServiceAccountToken)
	require.Zero(t, *job.Spec.BackoffLimit)
	require.NotEqual(t, deployment(t, nil).Spec.Selector.MatchLabels["app.kubernetes.io/name"], pod.Labels["app.kubernetes.io/name"])
	namespace(t, l, "checked")
	_, err = l.Client().CoreV1().ServiceAccounts("checked").Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.True(t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
	isAdmitted(t, l, metav1.ObjectMeta{Name: job.Name, Namespace: "checked"}, pod)

	_, err = faulty(`[{"name":"mine","match":["remediation=~\"(mine\""],"plan":[{"step":"reboot"}]}]`)
	require.ErrorContains(t, err, "policies[0].match[0]")
	_, err = faulty(`[{"name":"mine","match":["remediation=\"mine\""],"plan":[{"step":"rebooot"}]}]`)
	require.ErrorContains(t, err, "policies[0].plan[0].step: there is no remediation")
}

// TestEveryPodPullsWithTheSecretsOfAParentChart: this is tested for Drydock's pods, the agents',
// that of `helm test`, and that of the check before an upgrade. The control: without these values,
// no pod has any pull secret.
func TestEveryPodPullsWithTheSecretsOfAParentChart(t *testing.T) {
	pods := func(args ...string) map[string][]corev1.LocalObjectReference {
		text := helmAlone(t, append([]string{"template", "drydock", filepath.Join(root(t), "charts", "drydock"), "--set", "agent.enabled=true"}, args...)...)
		out := map[string][]corev1.LocalObjectReference{}
		for _, o := range objects(t, map[string]string{"all": text}) {
			var pod corev1.PodSpec
			switch o.GetKind() {
			case "Pod":
				var p corev1.Pod
				find(t, []*unstructured.Unstructured{o}, "Pod", o.GetName(), &p)
				pod = p.Spec
			case "Deployment", "DaemonSet", "Job":
				var owner struct {
					Spec struct{ Template corev1.PodTemplateSpec }
				}
				find(t, []*unstructured.Unstructured{o}, o.GetKind(), o.GetName(), &owner)
				pod = owner.Spec.Template.Spec
			default:
				continue
			}
			require.NotEmpty(t, pod.Containers, o.GetName())
			out[o.GetKind()+" "+o.GetName()] = pod.ImagePullSecrets
		}
		return out
	}
	both := []corev1.LocalObjectReference{{Name: "own"}, {Name: "by-name"}, {Name: "by-object"}}
	want := map[string][]corev1.LocalObjectReference{"Deployment drydock": both, "DaemonSet drydock-agent": both, "Pod drydock-selftest": both, "Job drydock-check": both}
	require.Equal(t, want, pods("--set-json", `imagePullSecrets=[{"name":"own"}]`, "--set-json", `global.imagePullSecrets=["by-name",{"name":"by-object"}]`))
	for name := range want {
		want[name] = nil
	}
	require.Equal(t, want, pods())
}

// TestHelmRefusesWhatTheCheckRefuses: if the Job fails, nothing is upgraded. The control: if it
// succeeds, everything is upgraded. An install does not wait for a Job.
func TestHelmRefusesWhatTheCheckRefuses(t *testing.T) {
	l := cluster(t)
	for release, ends := range map[string]batchv1.JobConditionType{"refused": batchv1.JobFailed, "taken": batchv1.JobComplete} {
		namespace(t, l, release)
		t.Cleanup(func() { sweep(t, l, release) })
		chart := []string{release, filepath.Join(root(t), "charts", "drydock"), "--namespace", release, "--set", "admission.policy.enabled=false,allowSecondRelease=true"}
		program(t, l, "helm", append([]string{"install"}, chart...)...)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		go func() {
			_ = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
				return endJob(ctx, l, release, release+"-check", ends) == nil, nil
			})
		}()
		_, faults, err := try(t, l, "helm", append([]string{"upgrade", "--set", "replicaCount=3"}, chart...)...)
		cancel()
		d, missing := l.Client().AppsV1().Deployments(release).Get(t.Context(), release, metav1.GetOptions{})
		require.NoError(t, missing)
		if ends == batchv1.JobFailed {
			require.Error(t, err)
			require.Contains(t, faults, "refused-check")
			require.EqualValues(t, 2, *d.Spec.Replicas)
			continue
		}
		require.NoError(t, err, "%s", faults)
		require.EqualValues(t, 3, *d.Spec.Replicas)
	}
}

// endJob sets the Job's status as its controller would.
func endJob(ctx context.Context, l *lab.Lab, namespace, name string, as batchv1.JobConditionType) error {
	jobs := l.Client().BatchV1().Jobs(namespace)
	job, err := jobs.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	now := metav1.Now()
	job.Status.StartTime = &now
	before := batchv1.JobFailureTarget
	if as == batchv1.JobComplete {
		before = batchv1.JobSuccessCriteriaMet
		job.Status.CompletionTime, job.Status.Succeeded = &now, 1
	}
	for _, c := range []batchv1.JobConditionType{before, as} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue, Reason: "Test", LastTransitionTime: now})
	}
	_, err = jobs.UpdateStatus(ctx, job, metav1.UpdateOptions{})
	return err
}
