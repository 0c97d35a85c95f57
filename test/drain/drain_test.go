package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kube"
)

func (p *place) daemonSet(name string) {
	p.t.Helper()
	pod := template(name)
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: appsv1.DaemonSetSpec{
		Selector: &metav1.LabelSelector{MatchLabels: pod.Labels}, Template: corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec},
	}}
	set.Spec.Template.Spec.NodeSelector = map[string]string{corev1.LabelHostname: p.node}
	_, err := p.admin.AppsV1().DaemonSets(p.ns).Create(p.t.Context(), set, metav1.CreateOptions{})
	require.NoError(p.t, err)
	p.bind(name, 1, p.node)
}

func (p *place) finish(name string) {
	p.t.Helper()
	p.eventually(func() bool {
		pod, err := p.admin.CoreV1().Pods(p.ns).Get(p.t.Context(), name, metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning
	})
	_, err := p.admin.CoreV1().Pods(p.ns).Patch(p.t.Context(), name, types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	require.NoError(p.t, err)
}

func TestAllPodsGoButThoseOfDaemonSetsAndMirrorPods(t *testing.T) {
	p := newPlace(t)
	p.replicas("web", 3)
	p.replicas("scratch", 1, withEmptyDir)
	p.daemonSet("agent")
	p.run("static", func(pod *corev1.Pod) { pod.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"} })
	p.run("job", withEmptyDir)
	p.finish("job") // a finished pod loses nothing
	report, err := p.drain(kube.DrainOptions{})
	require.NoError(t, err)
	require.Equal(t, kube.DrainReport{Total: 5, Evicted: 5}, report)
	require.Equal(t, "5 of 5 pods are gone", report.String())
	on := p.on()
	require.Len(t, on, 2)
	require.Contains(t, on, "static")
	require.Condition(t, func() bool {
		return slices.ContainsFunc(on, func(s string) bool { return strings.HasPrefix(s, "agent-") })
	})

	report, err = p.drain(kube.DrainOptions{})
	require.NoError(t, err, "a node that is empty is drained")
	require.Equal(t, "no pod had to go", report.String())
	require.Equal(t, 5, p.asked())
}

func TestAPodWithoutAControllerRefusesTheDrainUnlessTheStepMayEvictIt(t *testing.T) {
	p := newPlace(t)
	p.replicas("web", 2)
	for i := range 7 {
		p.run(fmt.Sprint("bare-", i))
	}
	report, err := p.drain(kube.DrainOptions{})
	require.ErrorIs(t, err, kube.ErrDrainRefused)
	require.ErrorContains(t, err, "draining Node "+p.node)
	require.ErrorContains(t, err, p.ns+"/bare-0, ")
	require.ErrorContains(t, err, p.ns+"/bare-4 and 2 more")
	require.ErrorContains(t, err, "set withoutController to wait or evict on the plan's step drain")
	require.Zero(t, report.Evicted)
	require.Zero(t, p.asked(), "a node that cannot be emptied is left alone altogether")

	// The drain waits for a pod that is deleted already.
	for i := range 7 {
		require.NoError(t, p.admin.CoreV1().Pods(p.ns).Delete(t.Context(), fmt.Sprint("bare-", i), metav1.DeleteOptions{}))
	}
	p.run("bare-last")
	_, err = p.drain(kube.DrainOptions{})
	require.ErrorIs(t, err, kube.ErrDrainRefused)
	report, err = p.drain(kube.DrainOptions{WithoutController: remediations.WithoutControllerEvict})
	require.NoError(t, err)
	require.Equal(t, 3, report.Evicted)
	require.Empty(t, p.on())
}

func TestTheStepWaitsForAPodWithoutAController(t *testing.T) {
	p := newPlace(t)
	p.replicas("web", 2)
	p.run("runner", func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(1)) })
	p.run("notebook")
	s := p.start(kube.DrainOptions{WithoutController: remediations.WithoutControllerWait})
	s.says(p.ns + "/runner has no controller, and Drydock waits until it ends")
	s.says("2 of 4 pods are left")
	p.eventually(func() bool { return len(p.on()) == 2 })
	require.Equal(t, 2, p.asked(), "all other pods are evicted, and these are not")
	require.ElementsMatch(t, []string{"runner", "notebook"}, p.on())

	p.finish("runner") // it has ended by itself, so its eviction loses nothing
	s.says("1 of 4 pods are left; " + p.ns + "/notebook has no controller")
	require.NoError(t, p.admin.CoreV1().Pods(p.ns).Delete(t.Context(), "notebook", metav1.DeleteOptions{}))
	report, err := s.ends()
	require.NoError(t, err)
	require.Equal(t, 4, report.Total)
	require.Empty(t, p.on())

	// The drain ends when the step's time has passed, and names what it waited for.
	p.run("endless")
	late := p.start(kube.DrainOptions{WithoutController: remediations.WithoutControllerWait})
	late.says(p.ns + "/endless has no controller")
	report = late.endsPromptlyWith(errors.New("the time is up"))
	require.Equal(t, []kube.Held{{Pod: p.ns + "/endless", Why: "has no controller, and Drydock waits until it ends"}}, report.Held)
	require.Equal(t, []string{"endless"}, p.on())
}

func TestTheDrainWaitsForEveryTerminatingPod(t *testing.T) {
	p := newPlace(t)
	p.run("orphan", func(pod *corev1.Pod) {
		pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "gone", UID: "gone", Controller: ptr.To(true)}}
		withFinalizer(pod) // otherwise the garbage collector would be faster
	})
	p.eventually(func() bool { // the garbage collector deletes it, and the finalizer keeps it
		pod, err := p.admin.CoreV1().Pods(p.ns).Get(t.Context(), "orphan", metav1.GetOptions{})
		return err == nil && pod.DeletionTimestamp != nil
	})
	s := p.start(kube.DrainOptions{})
	s.says("1 of 1 pods are left, 1 of them terminating")
	p.unfinalize("orphan")
	_, err := s.ends()
	require.NoError(t, err)
}

func TestAnEmptyDirRefusesTheDrainWhereItMustBeKept(t *testing.T) {
	p := newPlace(t)
	p.replicas("scratch", 1, withEmptyDir)
	_, err := p.drain(kube.DrainOptions{KeepEmptyDir: true})
	require.ErrorIs(t, err, kube.ErrDrainRefused)
	require.ErrorContains(t, err, p.ns+"/scratch-")
	require.ErrorContains(t, err, "emptyDir")
	require.Zero(t, p.asked())
	_, err = p.drain(kube.DrainOptions{})
	require.NoError(t, err)
	require.Empty(t, p.on())
}

func TestAGracePeriodIsThePodsOwnUnlessItIsCapped(t *testing.T) {
	p := newPlace(t)
	p.lab.Break(p.node) // the pods then stay, and the evictions can be counted
	t.Cleanup(func() { require.NoError(t, p.lab.Heal(context.WithoutCancel(t.Context()), p.node, "")) })
	asks := map[string]int64{"patient": 600, "quick": 7}
	for name, own := range asks {
		p.run(name, func(pod *corev1.Pod) { pod.Spec.TerminationGracePeriodSeconds = &own })
	}
	s := p.start(kube.DrainOptions{WithoutController: remediations.WithoutControllerEvict, MaxGrace: 90 * time.Second})
	s.says("2 of 2 pods are left, 2 of them terminating")
	s.cancel(nil)
	asks["patient"] = 90
	for name, want := range asks {
		pod, err := p.admin.CoreV1().Pods(p.ns).Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, want, ptr.Deref(pod.DeletionGracePeriodSeconds, -1), name)
	}
}

func TestANodeWithHundredsOfPodsIsReadPageByPage(t *testing.T) {
	p := newPlace(t)
	const n = 300
	var g errgroup.Group
	g.SetLimit(8)
	for i := range n {
		g.Go(func() error {
			pod := template("many")
			pod.Name, pod.Spec.NodeName = fmt.Sprint("many-", i), p.node
			_, err := p.admin.CoreV1().Pods(p.ns).Create(t.Context(), &pod, metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(t, g.Wait())
	report, err := p.drain(kube.DrainOptions{WithoutController: remediations.WithoutControllerEvict})
	require.NoError(t, err)
	require.Equal(t, n, report.Total)
	require.Equal(t, n, report.Evicted)
	require.Equal(t, n, p.asked(), "one eviction a pod")
	require.Empty(t, p.on())
	require.GreaterOrEqual(t, p.pages, 4, "three pages, and a look whether all are gone")
}

func TestOnlyACordonedNodeIsDrained(t *testing.T) {
	p := newPlace(t)
	p.replicas("web", 2)
	p.budget("web", "web", 2, 2)
	p.cordon(false)
	_, err := p.drain(kube.DrainOptions{})
	require.ErrorIs(t, err, kube.ErrNotCordoned)
	require.Zero(t, p.asked())

	p.cordon(true)
	s := p.start(kube.DrainOptions{})
	s.says("is held back")
	p.cordon(false) // a person uncordons the node in the middle of the drain
	_, err = s.ends()
	require.ErrorIs(t, err, kube.ErrNotCordoned)
	asked := p.asked()
	require.Never(t, func() bool { return p.asked() > asked }, time.Second, 50*time.Millisecond)
	require.Len(t, p.on(), 2)
}

func TestAnotherNodeOfThatNameIsNotDrained(t *testing.T) {
	p := newPlace(t)
	p.replicas("web", 1)
	_, err := p.drain(kube.DrainOptions{UID: "of-the-old-machine"})
	require.ErrorIs(t, err, engine.ErrNotFound)
	require.Zero(t, p.asked())
	p.node = "no-such-node"
	_, err = p.drain(kube.DrainOptions{})
	require.ErrorIs(t, err, engine.ErrNotFound)
}

// The next pod of a StatefulSet has the same name as the previous one, and runs on a healthy node.
func TestAPodOfThatNameThatRunsElsewhereIsNotEvicted(t *testing.T) {
	p := newPlace(t)
	p.run("web-0")
	p.onEviction(func(string) lab.Verdict {
		p.onEviction(nil, nil)
		// This ends the pod at once. KWOK would end a pod by its name only, which may be the next
		// one's.
		require.NoError(t, p.admin.CoreV1().Pods(p.ns).Delete(t.Context(), "web-0", metav1.DeleteOptions{GracePeriodSeconds: ptr.To(int64(0))}))
		p.eventually(func() bool {
			_, err := p.admin.CoreV1().Pods(p.ns).Get(t.Context(), "web-0", metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
		p.run("web-0", func(pod *corev1.Pod) { pod.Spec.NodeName = elsewhere })
		p.eventually(func() bool {
			pod, err := p.admin.CoreV1().Pods(p.ns).Get(t.Context(), "web-0", metav1.GetOptions{})
			return err == nil && pod.Status.Phase == corev1.PodRunning
		})
		return lab.Pass
	}, nil)
	report, err := p.drain(kube.DrainOptions{WithoutController: remediations.WithoutControllerEvict})
	require.NoError(t, err)
	require.Zero(t, report.Evicted)
	require.Equal(t, 1, p.asked())
	pod, err := p.admin.CoreV1().Pods(p.ns).Get(t.Context(), "web-0", metav1.GetOptions{})
	require.NoError(t, err)
	require.Nil(t, pod.DeletionTimestamp)
	require.Equal(t, elsewhere, pod.Spec.NodeName)
}
