package sidecar

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/remediations"
	kind "drydock.dev/drydock/remediations/targets/sidecar"
)

// nodeCase is a SeiNode that differs in one field from a SeiNode that allows an approval; without
// the difference, it is the case's control.
type nodeCase struct {
	value   any
	path    string
	control any // another value that allows it; nil: the field is absent
	text    string
}

func conditions(more ...any) []any {
	status := seiNode()["status"].(map[string]any)
	return append(slices.Clone(status["conditions"].([]any)), more...)
}

// without leaves out the condition of a type.
func without(kind string, more ...any) []any {
	return slices.DeleteFunc(conditions(more...), func(c any) bool {
		return !slices.ContainsFunc(more, func(m any) bool { return fmt.Sprint(m) == fmt.Sprint(c) }) && c.(map[string]any)["type"] == kind
	})
}

func requireHolds(t *testing.T, tc nodeCase) {
	t.Helper()
	path := strings.Split(tc.path, ".")
	control := tc.control
	if control == nil {
		control = gone
	}
	g := newGated(t)
	s := newScene(t, g, seiPod(t, g), set(seiNode(), tc.value, path...))
	got := s.look(t)
	require.Contains(t, got.Held, tc.text, "%+v", got)
	require.Contains(t, got.Held, "SeiNode pacific-1/rpc-1 ")
	require.Empty(t, got.Unknown)
	require.Empty(t, got.Health)
	requireRefused(t, s.approve(t), reasonChanged, tc.text)
	require.Empty(t, g.Posts())
	require.Empty(t, g.Probes(), "a held one is left alone")

	s = newScene(t, g, seiPod(t, g), set(seiNode(), control, path...))
	require.Equal(t, kind.HealthNotReady, s.look(t).Health, "the control")
	require.NoError(t, s.approve(t))
	require.Len(t, g.Posts(), 1)
}

func TestS0_16EveryHoldHolds(t *testing.T) {
	for name, tc := range map[string]nodeCase{
		"adopted workflow":  {map[string]any{"name": "resync", "uid": "u"}, "status.adoptedWorkflow", nil, `held by the workflow "resync"`},
		"nameless workflow": {map[string]any{}, "status.adoptedWorkflow", nil, "held by the workflow"},
		"workflow running": {
			without("WorkflowInProgress", condition("WorkflowInProgress", "True", "WorkflowRunning")), "status.conditions",
			conditions(), "WorkflowInProgress (WorkflowRunning)",
		},
		"workflow failed": {
			without("WorkflowInProgress", condition("WorkflowInProgress", "True", "WorkflowFailedHeld")), "status.conditions",
			without("WorkflowInProgress"), "WorkflowInProgress (WorkflowFailedHeld)",
		},
		"maintenance asked for":       {"AfterExit", "spec.maintenance.hold", "", `spec.maintenance.hold is "AfterExit"`},
		"maintenance in effect":       {"Immediate", "status.maintenanceHold", "", `status.maintenanceHold is "Immediate"`},
		"maintenance in progress":     {conditions(condition("MaintenanceInProgress", "True", "Held")), "status.conditions", nil, "MaintenanceInProgress (Held)"},
		"data to be reset":            {int64(2), "spec.dataResetGeneration", int64(0), "spec.dataResetGeneration is 2, status.dataResetGeneration is 0"},
		"data reset failed":           {conditions(condition("DataResetInProgress", "True", "ResetFailed")), "status.conditions", nil, "DataResetInProgress (ResetFailed)"},
		"what comes after this":       {conditions(condition("SomethingNewInProgress", "True", "New")), "status.conditions", nil, "SomethingNewInProgress (New)"},
		"paused":                      {true, "spec.paused", false, "is paused"},
		"paused condition":            {without("Paused", condition("Paused", "True", "Paused")), "status.conditions", without("Paused"), "Paused (Paused)"},
		"being deleted":               {"2026-01-01T00:00:00Z", "metadata.deletionTimestamp", nil, "is being deleted"},
		"initializing":                {"Initializing", "status.phase", "Running", `in phase "Initializing"`},
		"no phase":                    {gone, "status.phase", "Running", `in phase ""`},
		"no status":                   {gone, "status", seiNode()["status"], `in phase ""`},
		"null where a status is":      {nil, "status", seiNode()["status"], `in phase ""`},
		"second of one condition":     {conditions(condition("Paused", "True", "Twice")), "status.conditions", conditions(), "Paused (Twice)"},
		"more than is read otherwise": {"Failed", "status.phase", "Running", `in phase "Failed"`},
	} {
		t.Run(name, func(t *testing.T) { requireHolds(t, tc) })
	}
}

func TestS0_5ImageDriftAndPlansAreTheControllersOwn(t *testing.T) {
	for name, tc := range map[string]nodeCase{
		"image wanted":          {"seid:v7", "spec.image", image, `needs the image "seid:v7", but "` + image + `" is rolled out`},
		"image rolled out":      {"seid:v5", "status.currentImage", image, `but "seid:v5" is rolled out`},
		"image not seen yet":    {gone, "status.currentImage", image, `but "" is rolled out`},
		"no image":              {gone, "spec.image", image, `needs the image ""`},
		"update in progress":    {without("NodeUpdateInProgress", condition("NodeUpdateInProgress", "True", "UpdateStarted")), "status.conditions", without("NodeUpdateInProgress"), "NodeUpdateInProgress (UpdateStarted)"},
		"plan under way":        {map[string]any{"phase": "Active", "tasks": []any{}}, "status.plan", map[string]any{"phase": "Complete"}, `status.plan is "Active"`},
		"plan of no phase":      {map[string]any{}, "status.plan", nil, "has a plan in progress"},
		"plan of another phase": {map[string]any{"phase": "Waiting"}, "status.plan", map[string]any{"phase": "Failed"}, `status.plan is "Waiting"`},
		"its own mark-ready":    {map[string]any{"phase": "Active", "tasks": []any{map[string]any{"type": "mark-ready"}}}, "status.plan", gone, "approves the sidecar itself"},
	} {
		t.Run(name, func(t *testing.T) { requireHolds(t, tc) })
	}
}

func TestS0_5MissingImagesDoNotMatch(t *testing.T) {
	held, unknown := seiNodeSays(set(set(seiNode(), gone, "spec", "image"), gone, "status", "currentImage"), &corev1.Pod{})
	require.Contains(t, held, `needs the image "", but "" is rolled out`)
	require.Empty(t, unknown)
}

func TestS0_5TheSidecarsOwnImage(t *testing.T) {
	for _, tc := range []struct {
		wants, rolledOut any
		text             string
	}{
		{"seictl:2", "seictl:1", `needs the sidecar's image "seictl:2", but "seictl:1" is rolled out`},
		{"seictl:2", "seictl:2", ""},
		{"seictl:2", gone, ""}, // not seen yet
		{gone, "seictl:1", ""}, // the controller's default
	} {
		node := set(set(seiNode(), tc.wants, "spec", "sidecar", "image"), tc.rolledOut, "status", "currentSidecarImage")
		held, unknown := seiNodeSays(node, &corev1.Pod{})
		require.Empty(t, unknown)
		require.Equal(t, tc.text, held)
	}
}

func TestS0_5APodOfAnotherImageIsHeld(t *testing.T) {
	g := newGated(t)
	pod := seiPod(t, g)
	pod.Spec.Containers[0].Image = "seid:v7" // the image was put back while the pod was replaced
	s := newScene(t, g, pod, seiNode())
	require.Contains(t, s.look(t).Held, `needs the image "`+image+`", but its pod has "seid:v7"`)
	requireRefused(t, s.approve(t), reasonChanged)
	require.Empty(t, g.Posts())
}

func TestAFieldOfAnUnexpectedTypeIsUnknownAndNotAbsent(t *testing.T) {
	for path, values := range map[string][]any{
		"metadata.deletionTimestamp":  {true, int64(0)},
		"spec":                        {"x", []any{}},
		"spec.image":                  {true, []any{image}},
		"spec.paused":                 {"true", "false", int64(1), map[string]any{}},
		"spec.maintenance":            {"Immediate", []any{}},
		"spec.maintenance.hold":       {true, map[string]any{}},
		"spec.dataResetGeneration":    {"2", 2.5, true},
		"spec.sidecar":                {"seictl:2"},
		"status":                      {"Running", []any{}},
		"status.phase":                {true, []any{"Running"}},
		"status.plan":                 {"Active", []any{}, true},
		"status.plan.phase":           {true, int64(1)},
		"status.adoptedWorkflow":      {"resync", true, []any{}},
		"status.adoptedWorkflow.name": {int64(1)},
		"status.maintenanceHold":      {true, map[string]any{}},
		"status.dataResetGeneration":  {"0", false},
		"status.currentImage":         {int64(1), map[string]any{}},
		"status.currentSidecarImage":  {int64(1)},
		"status.conditions": {
			"x", map[string]any{}, []any{"Paused"}, []any{nil}, []any{map[string]any{"type": true}},
			[]any{map[string]any{"type": "Paused", "status": true}}, []any{condition("Paused", "Unknown", "x")},
			[]any{condition("WorkflowInProgress", "", "x")}, []any{map[string]any{"type": "Paused"}},
			[]any{condition("Paused", "True", "held"), "x"}, []any{map[string]any{"type": "Paused", "status": "False", "reason": 1.5}},
		},
	} {
		for _, v := range values {
			t.Run(fmt.Sprintf("%s %v", path, v), func(t *testing.T) {
				g := newGated(t)
				s := newScene(t, g, seiPod(t, g), set(seiNode(), v, strings.Split(path, ".")...))
				got := s.look(t)
				require.NotEmpty(t, got.Unknown, "%+v", got)
				require.Empty(t, got.Held)
				require.Empty(t, got.Health)
				requireRefused(t, s.approve(t), reasonChanged, "SeiNode pacific-1/rpc-1 has ")
				require.Empty(t, g.Posts())
			})
		}
	}
}

func TestWhatCannotBeReadHolds(t *testing.T) {
	group := seiNodes.GroupResource()
	for name, tc := range map[string]struct {
		err  error
		text string
	}{
		"forbidden":   {apierrors.NewForbidden(group, seiName, nil), "forbidden"},
		"missing":     {apierrors.NewNotFound(group, seiName), "SeiNode pacific-1/rpc-1, which is in the label sei.io/node of pod rpc-1-0, does not exist"},
		"timeout":     {apierrors.NewTimeoutError("slow", 1), "slow"},
		"unavailable": {apierrors.NewServiceUnavailable("starting"), "starting"},
		"other":       {fmt.Errorf("line\n%s", strings.Repeat("x", 999)), "reading SeiNode"},
	} {
		t.Run(name, func(t *testing.T) {
			s := closed(t)
			s.dyn.PrependReactor("get", "seinodes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			got := s.look(t)
			require.Contains(t, got.Unknown, tc.text)
			require.Empty(t, got.Owner)
			require.Empty(t, got.Health)
			requireRefused(t, s.approve(t), reasonChanged)
			require.Empty(t, s.g.Posts())
			require.Empty(t, s.g.Probes())
		})
	}
	t.Run("another object", func(t *testing.T) {
		s := closed(t)
		s.dyn.PrependReactor("get", "seinodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, &unstructured.Unstructured{Object: set(seiNode(), "rpc-10", "metadata", "name")}, nil
		})
		require.Contains(t, s.look(t).Unknown, "another object")
	})
	for _, label := range []string{"", "Rpc-1", "a/b", "rpc_1", ".."} {
		t.Run("label "+label, func(t *testing.T) {
			g := newGated(t)
			pod := seiPod(t, g)
			pod.Labels[seiNodeLabel] = label
			s := newScene(t, g, pod, seiNode())
			require.Contains(t, s.look(t).Unknown, "is not the name of a SeiNode")
			require.Empty(t, s.dyn.Actions(), "nothing is asked for under such a name")
			require.Empty(t, g.Probes())
		})
	}
}

func TestAPodWithoutAnOwnerIsLookedAtForItself(t *testing.T) {
	held := set(seiNode(), true, "spec", "paused")
	t.Run("not labelled", func(t *testing.T) {
		g := newGated(t)
		pod := seiPod(t, g)
		pod.Labels = map[string]string{"app": "gated"}
		s := newScene(t, g, pod, held, func(o *Options) { o.Selector = labelled("app", "gated") })
		require.Equal(t, kind.HealthNotReady, s.look(t).Health)
		require.Empty(t, s.look(t).Owner)
		require.NoError(t, s.approve(t))
	})
	t.Run("no owner configured", func(t *testing.T) {
		g := newGated(t)
		s := newScene(t, g, seiPod(t, g), held, func(o *Options) { o.Owner, o.Dynamic = "", nil })
		require.Equal(t, kind.HealthNotReady, s.look(t).Health)
	})
}

// apiServer answers like a real one about kinds that it has or does not have.
func apiServer(t *testing.T, groups []string, seiNodes http.HandlerFunc) func(*Options) {
	t.Helper()
	mux := http.NewServeMux()
	write := func(w http.ResponseWriter, code int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("GET /api", func(w http.ResponseWriter, _ *http.Request) {
		write(w, 200, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	})
	mux.HandleFunc("GET /apis", func(w http.ResponseWriter, _ *http.Request) {
		if groups == nil {
			write(w, 503, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: 503, Message: "starting"})
			return
		}
		list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
		for _, g := range groups {
			v := metav1.GroupVersionForDiscovery{GroupVersion: g + "/v1", Version: "v1"}
			list.Groups = append(list.Groups, metav1.APIGroup{Name: g, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
		}
		write(w, 200, list)
	})
	if seiNodes != nil {
		mux.HandleFunc("GET /apis/sei.io/v1alpha1/namespaces/"+namespace+"/seinodes/{name}", seiNodes)
	}
	server := httptest.NewServer(mux) // what it does not know is "404 page not found"
	t.Cleanup(server.Close)
	cfg := &rest.Config{Host: server.URL, QPS: -1}
	dyn, err := dynamic.NewForConfig(cfg)
	require.NoError(t, err)
	kube, err := kubernetes.NewForConfig(cfg)
	require.NoError(t, err)
	return func(o *Options) {
		o.Client = podsAnd{o.Client, kube}
		o.Dynamic = dyn
	}
}

func TestAClusterWithoutSeiNodesHoldsNothingAndOneOfANewerKindHolds(t *testing.T) {
	notFound := func(w http.ResponseWriter, _ *http.Request) {
		status := apierrors.NewNotFound(seiNodes.GroupResource(), seiName).Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(status)
	}
	for name, tc := range map[string]struct {
		groups   []string
		seiNodes http.HandlerFunc
		unknown  string
	}{
		"no such kind":           {groups: []string{"apps"}},
		"another version":        {groups: []string{"apps", "sei.io"}, unknown: "serves the group sei.io, but not SeiNodes of version v1alpha1"},
		"not to be found out":    {groups: nil, unknown: "whether the API server serves SeiNodes"},
		"the kind, not this one": {groups: []string{"sei.io"}, seiNodes: notFound, unknown: "SeiNode pacific-1/rpc-1, which is in the label"},
		"the kind and this one": {groups: []string{"sei.io"}, seiNodes: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(seiNode())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGated(t)
			s := newScene(t, g, seiPod(t, g), nil, apiServer(t, tc.groups, tc.seiNodes))
			got := s.look(t)
			require.Contains(t, got.Unknown, tc.unknown)
			require.Equal(t, tc.unknown == "", got.Unknown == "")
			require.Equal(t, tc.unknown == "", got.Health == kind.HealthNotReady)
			require.Equal(t, name == "the kind and this one", got.Owner != remediations.Object{})
		})
	}
}

func TestAnAPIServerThatHangsHolds(t *testing.T) {
	g := newGated(t)
	released := make(chan struct{})
	s := newScene(t, g, seiPod(t, g), nil, apiServer(t, []string{"sei.io"}, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-released:
		case <-r.Context().Done():
		}
	}))
	defer close(released)
	s.apiTimeout = 50 * time.Millisecond
	require.Contains(t, s.look(t).Unknown, "reading SeiNode")
	require.Empty(t, g.Probes())
}

func FuzzSeiNode(f *testing.F) {
	add := func(node map[string]any) {
		seed, err := json.Marshal(node)
		require.NoError(f, err)
		f.Add(seed)
	}
	add(seiNode())
	for _, v := range []any{true, "True", nil, 1, 1.5, []any{}, map[string]any{"phase": "Active"}, conditions(condition("AInProgress", "True", "\x00"))} {
		for _, path := range []string{"spec.paused", "status.plan", "status.conditions", "status.adoptedWorkflow", "spec.dataResetGeneration", "status"} {
			add(set(seiNode(), v, strings.Split(path, ".")...))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		node := &unstructured.Unstructured{}
		if node.UnmarshalJSON(data) != nil {
			return
		}
		before := fmt.Sprint(node.Object)
		held, unknown := seiNodeSays(node.Object, &corev1.Pod{})
		require.Equal(t, before, fmt.Sprint(node.Object))
		require.False(t, held != "" && unknown != "")
		requireText(t, held+unknown)
		if held+unknown != "" {
			return
		}
		// It allows it: the node is right, only written in another form.
		spec, _ := node.Object["spec"].(map[string]any)
		status, _ := node.Object["status"].(map[string]any)
		require.Equal(t, "Running", status["phase"])
		require.NotEmpty(t, spec["image"])
		require.Equal(t, spec["image"], status["currentImage"])
		require.Contains(t, []any{nil, false}, spec["paused"])
		require.Nil(t, status["adoptedWorkflow"])
		if plan := status["plan"]; plan != nil {
			require.Contains(t, []any{"Complete", "Failed"}, plan.(map[string]any)["phase"])
		}
		all, _ := status["conditions"].([]any)
		for _, c := range all {
			of := maps.Clone(c.(map[string]any))
			kind, _ := of["type"].(string)
			if kind == "Paused" || strings.HasSuffix(kind, "InProgress") {
				require.Equal(t, "False", of["status"])
			}
		}
	})
}
