package sidecar

import (
	"errors"
	"fmt"
	"net/url"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/remediations/providers/sidecar/settings"
)

func viaTask(o *Options) { o.Via = settings.ViaSeiNodeTask }

func (s *scene) tasks(t *testing.T) []unstructured.Unstructured {
	t.Helper()
	list, err := s.dyn.Resource(seiNodeTasks).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

func TestASeiNodeTaskAsksTheController(t *testing.T) {
	s := closed(t, viaTask)
	id := newID()
	require.NoError(t, s.approveAs(t, id))
	require.Empty(t, s.g.Posts(), "the controller does that")
	require.Len(t, s.g.Probes(), 1)
	task := s.tasks(t)
	require.Len(t, task, 1)
	require.Equal(t, "sei.io/v1alpha1 SeiNodeTask pacific-1/drydock-"+id,
		fmt.Sprint(task[0].GetAPIVersion(), " ", task[0].GetKind(), " ", task[0].GetNamespace(), "/", task[0].GetName()))
	require.Equal(t, map[string]any{
		"kind": "MarkReady", "markReady": map[string]any{}, "timeoutSeconds": int64(60),
		"target": map[string]any{"nodeRef": map[string]any{"name": "rpc-1"}, "requirePhase": "Running", "requirePhaseTimeout": "30s"},
	}, task[0].Object["spec"])

	require.NoError(t, s.approveAs(t, id), "it is there: it was accepted")
	require.Len(t, s.tasks(t), 1)
	require.NoError(t, s.approve(t))
	require.Len(t, s.tasks(t), 2)
}

func TestASeiNodeTaskIsCreatedOnlyWhereAnApprovalIsAllowed(t *testing.T) {
	for name, node := range map[string]map[string]any{
		"held":    set(seiNode(), map[string]any{"name": "w"}, "status", "adoptedWorkflow"),
		"unknown": set(seiNode(), "true", "spec", "paused"),
		"missing": nil,
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			s := newScene(t, g, seiPod(t, g), node, viaTask)
			requireRefused(t, s.approve(t), reasonChanged)
			require.Empty(t, s.tasks(t))
		})
	}
	t.Run("ready", func(t *testing.T) {
		s := closed(t, viaTask)
		s.g.answer(status(200))
		requireRefused(t, s.approve(t), reasonChanged)
		require.Empty(t, s.tasks(t))
	})
	t.Run("no owner", func(t *testing.T) {
		g := newGated(t)
		pod := seiPod(t, g)
		pod.Labels = map[string]string{"app": "gated"}
		s := newScene(t, g, pod, seiNode(), viaTask, func(o *Options) { o.Selector = labelled("app", "gated") })
		requireRefused(t, s.approve(t), reasonRejected, "has no SeiNode, which a SeiNodeTask needs")
		require.Empty(t, s.tasks(t))
	})
}

func TestWhatTheAPIServerSaysToASeiNodeTask(t *testing.T) {
	group := seiNodeTasks.GroupResource()
	for name, tc := range map[string]struct {
		err     error
		refused reason // empty: perhaps
		text    string
	}{
		"forbidden":    {apierrors.NewForbidden(group, "x", errors.New("no")), reasonUnauthorized, "lacks the right to create seinodetasks.sei.io in namespace pacific-1"},
		"unauthorized": {apierrors.NewUnauthorized("no"), reasonUnauthorized, "lacks the right"},
		"invalid":      {apierrors.NewInvalid(seiNodeTasks.GroupVersion().WithKind("SeiNodeTask").GroupKind(), "x", field.ErrorList{}), reasonRejected, "refused the SeiNodeTask"},
		"no such kind": {apierrors.NewGenericServerResponse(404, "post", group, "", "404 page not found", 0, true), reasonRejected, "refused"},
		"bad request":  {apierrors.NewBadRequest("no"), reasonRejected, "refused"},
		"too many":     {apierrors.NewTooManyRequests("slow", 1), reasonRejected, "refused"},
		"timeout":      {apierrors.NewTimeoutError("slow", 1), "", "no answer came to the creation of SeiNodeTask"},
		"internal":     {apierrors.NewInternalError(errors.New("etcd")), "", "no answer came"},
		"unavailable":  {apierrors.NewServiceUnavailable("starting"), "", "no answer came"},
		"torn":         {&url.Error{Op: "Post", URL: "https://api", Err: syscall.ECONNRESET}, "", "connection reset"},
		"nobody there": {&url.Error{Op: "Post", URL: "https://api", Err: syscall.ECONNREFUSED}, reasonFailed, "no connection to the API server"},
	} {
		t.Run(name, func(t *testing.T) {
			s := closed(t, viaTask)
			s.dyn.PrependReactor("create", "seinodetasks", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			err := s.approve(t)
			if tc.refused != "" {
				requireRefused(t, err, tc.refused, tc.text)
			} else {
				requirePerhaps(t, err, tc.text)
			}
		})
	}
}
