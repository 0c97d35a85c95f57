package kilo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kilo/election"
	kind "drydock.dev/drydock/remediations/targets/location"
)

// agentSays is what the agents' target of the lab's Prometheus exposes, and strangerSays what a
// target of another job exposes.
var agentSays, strangerSays atomic.Value

func TestMain(m *testing.M) {
	lab.Main(m, lab.Options{Alertmanagers: -1, Scrape: map[string][]string{"drydock-agent": {exposes(&agentSays)}, "stranger": {exposes(&strangerSays)}}})
}

// exposes serves the text as metrics, and returns the address.
func exposes(text *atomic.Value) string {
	text.Store("")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { //nolint:errcheck // it ends with the tests
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, text.Load().(string))
	}))
	return listener.Addr().String()
}

// site is a location of the test's own in the lab's cluster, with a Mesh that has the chart's
// rights.
type site struct {
	t *testing.T
	*Mesh
	lab      *lab.Lab
	proxy    *lab.Proxy
	location string
}

// newSite makes a location of that many nodes; the first leads by its key.
func newSite(t *testing.T, location string, nodes int) *site {
	t.Helper()
	l := lab.Shared(t)
	s := &site{t: t, lab: l, location: location}
	ctx := t.Context()
	for i := range nodes {
		n := onNode(s.name(i), location, with(election.LastSeenKey, fmt.Sprint(time.Now().Unix())), with(election.LocationKey, location))
		if i == 0 {
			n.Annotations[election.LeaderKey] = "true"
		}
		_, err := l.Client().CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	for i := range nodes { // the controller manager writes on a new Node, too, and removes a taint; the test must begin after that
		require.Eventually(t, func() bool {
			n := s.node(i)
			_, ok := n.Annotations[corev1.ObjectTTLAnnotationKey]
			return ok && len(n.Spec.Taints) == 0
		}, 5*time.Minute, 20*time.Millisecond)
	}
	t.Cleanup(func() {
		for i := range nodes {
			_ = l.Client().CoreV1().Nodes().Delete(context.WithoutCancel(ctx), s.name(i), metav1.DeleteOptions{})
		}
	})
	var err error
	s.proxy, err = l.NewProxy()
	require.NoError(t, err)
	t.Cleanup(s.proxy.Close)
	file, err := l.ServiceAccountKubeconfig(ctx, "kube-system", "drydock-kilo", s.proxy.URL())
	require.NoError(t, err)
	for _, object := range []string{
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"drydock-kilo"},"rules":[{"apiGroups":[""],"resources":["nodes"],"verbs":["get","list","patch"]},
			{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["list"]}]}`,
		`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"drydock-kilo"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"drydock-kilo"},"subjects":[{"kind":"ServiceAccount","name":"drydock-kilo","namespace":"kube-system"}]}`,
	} {
		require.NoError(t, l.Apply(ctx, []byte(object)))
	}
	right := authorizationv1.ResourceAttributes{Verb: "patch", Resource: "nodes"}
	require.NoError(t, l.AwaitRight(ctx, "system:serviceaccount:kube-system:drydock-kilo", right))
	config, err := clientcmd.BuildConfigFromFlags("", file)
	require.NoError(t, err)
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	s.Mesh, err = New(Options{
		Kilo: section(t, l.PrometheusURL()), API: client.CoreV1().Nodes(), Leases: client.CoordinationV1().Leases(corev1.NamespaceNodeLease), Nodes: func(context.Context) ([]*corev1.Node, error) { return nil, nil },
		Now: time.Now,
	})
	require.NoError(t, err)
	return s
}

func (s *site) name(i int) string { return fmt.Sprintf("%s-%d", s.location, i) }

func (s *site) node(i int) *corev1.Node {
	s.t.Helper()
	n, err := s.lab.Client().CoreV1().Nodes().Get(s.t.Context(), s.name(i), metav1.GetOptions{})
	require.NoError(s.t, err)
	return n
}

// keys returns the nodes that have the leader's key, and its value.
func (s *site) keys(nodes int) map[string]string {
	out := map[string]string{}
	for i := range nodes {
		if v, ok := s.node(i).Annotations[election.LeaderKey]; ok {
			out[s.name(i)] = v
		}
	}
	return out
}

// annotate is a write of another client; no value removes the key.
func (s *site) annotate(i int, key string, value ...string) {
	s.t.Helper()
	var v *string
	if len(value) > 0 {
		v = &value[0]
	}
	s.patch(i, map[string]any{"metadata": map[string]any{"annotations": map[string]*string{key: v}}})
}

func (s *site) patch(i int, patch map[string]any) {
	s.t.Helper()
	body, err := json.Marshal(patch)
	require.NoError(s.t, err)
	_, err = s.lab.Client().CoreV1().Nodes().Patch(s.t.Context(), s.name(i), types.MergePatchType, body, metav1.PatchOptions{})
	require.NoError(s.t, err)
}

// move is the move from the first node to the second, in its recorded form.
func (s *site) move() remediations.Move {
	was := "true"
	return remediations.Move{Location: s.location, From: s.name(0), To: s.name(1), Before: map[string]*string{s.name(0): &was, s.name(1): nil}}
}

func yes() error { return nil }

// but returns the Node without the fields that a move may change, and those that a kubelet writes.
func but(n *corev1.Node) *corev1.Node {
	n = n.DeepCopy()
	n.ResourceVersion, n.ManagedFields, n.Status = "", nil, corev1.NodeStatus{}
	delete(n.Annotations, election.LeaderKey)
	delete(n.Annotations, corev1.ObjectTTLAnnotationKey) // the controller manager adds it to a Node at some time
	n.Spec.Taints = nil
	return n
}

func TestAMoveChangesTheLeadersKeysAndNothingElse(t *testing.T) {
	s := newSite(t, "plain", 4)
	s.annotate(2, election.LeaderKey, "reserve")
	was, reserve := "true", "reserve"
	var before []*corev1.Node
	for i := range 4 {
		before = append(before, s.node(i))
	}
	move := remediations.Move{Location: "plain", From: "plain-0", To: "plain-3", Before: map[string]*string{"plain-0": &was, "plain-2": &reserve, "plain-3": nil}}
	var asked []map[string]string
	outcome, err := s.Move(t.Context(), move, func() error {
		asked = append(asked, s.keys(4))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.Equal(t, []map[string]string{
		{"plain-0": "true", "plain-2": "reserve"},
		{"plain-0": "true", "plain-2": "reserve", "plain-3": leaderValue},
		{"plain-0": "true", "plain-3": leaderValue},
	}, slices.CompactFunc(asked, maps.Equal), "it asks before each key that it writes; the successor's is the first, the old leader's the last")
	require.Equal(t, map[string]string{"plain-3": leaderValue}, s.keys(4))
	for i := range 4 {
		require.Equal(t, but(before[i]), but(s.node(i)))
		require.Equal(t, "plain", s.node(i).Annotations[election.LocationKey])
	}
	i := slices.IndexFunc(s.node(3).ManagedFields, func(f metav1.ManagedFieldsEntry) bool { return f.Manager == remediations.FieldManager })
	require.Contains(t, string(s.node(3).ManagedFields[i].FieldsV1.GetRawBytes()), `"f:`+election.LeaderKey+`"`)

	outcome, err = s.Move(t.Context(), move, yes)
	require.Equal(t, remediations.CallRefused, outcome, "it is not made twice")
	require.ErrorContains(t, err, `the location's leader is now "plain-3"`)

	require.NoError(t, s.PutBack(t.Context(), move))
	require.Equal(t, map[string]string{"plain-0": "true", "plain-2": "reserve"}, s.keys(4))
	writes := 0
	s.proxy.Before(func(r *http.Request) lab.Verdict {
		if r.Method == http.MethodPatch {
			writes++
		}
		return lab.Pass
	})
	require.NoError(t, s.PutBack(t.Context(), move))
	require.Zero(t, writes, "what is put back stays so, and nobody writes it again")
	for i := range 4 {
		require.Equal(t, but(before[i]), but(s.node(i)))
	}
}

func TestAMoveIsMadeWhileAgentsAndKubeletsWriteOnTheNodes(t *testing.T) {
	s := newSite(t, "busy", 3)
	var conflicts atomic.Int32
	s.proxy.After(func(r *http.Response) lab.Verdict {
		if r.StatusCode == http.StatusConflict {
			conflicts.Add(1)
		}
		return lab.Pass
	})
	last := ""
	s.proxy.Before(func(r *http.Request) lab.Verdict {
		if r.Method == http.MethodPatch && r.URL.Path != last { // the agent writes each Node once right before
			last = r.URL.Path
			for i := range 3 {
				if strings.HasSuffix(r.URL.Path, "/"+s.name(i)) { // only that one, or the move has no time left
					s.patch(i, map[string]any{"metadata": map[string]any{"annotations": map[string]any{
						election.LastSeenKey: fmt.Sprint(time.Now().Unix()), "example.com/beat": fmt.Sprint(time.Now().UnixNano()),
					}}})
				}
			}
		}
		return lab.Pass
	})
	asked := 0
	outcome, err := s.Move(t.Context(), s.move(), func() error { asked++; return nil })
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.GreaterOrEqual(t, conflicts.Load(), int32(2)) // KWOK may write too
	require.GreaterOrEqual(t, asked, 4, "before each of two keys, and again before the write that counts")
	require.Equal(t, map[string]string{"busy-1": leaderValue}, s.keys(3))
	last = ""
	require.NoError(t, s.PutBack(t.Context(), s.move()))
	require.Equal(t, map[string]string{"busy-0": "true"}, s.keys(3))
	require.GreaterOrEqual(t, conflicts.Load(), int32(4))

	s.proxy.Before(func(r *http.Request) lab.Verdict {
		if r.Method == http.MethodPatch {
			s.annotate(1, "example.com/beat", fmt.Sprint(time.Now().UnixNano()))
		}
		return lab.Pass
	})
	outcome, err = s.Move(t.Context(), s.move(), yes)
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorContains(t, err, "other programs changed the Node at each of 5 tries")
	require.Equal(t, map[string]string{"busy-0": "true"}, s.keys(3))
}

// TestAWordBetweenTwoKeysStopsTheMove: the second key is not written for a move that is no longer
// allowed. What was done is reported, and can be put back.
func TestAWordBetweenTwoKeysStopsTheMove(t *testing.T) {
	s := newSite(t, "word", 3)
	outcome, err := s.Move(t.Context(), s.move(), func() error {
		if _, written := s.keys(3)["word-1"]; written {
			return fmt.Errorf("a person paused it")
		}
		return nil
	})
	require.Equal(t, remediations.CallUnknown, outcome)
	require.ErrorContains(t, err, "written so far: kilo.squat.ai/leader on word-1; then: a person paused it")
	require.Equal(t, map[string]string{"word-0": "true", "word-1": leaderValue}, s.keys(3))
	require.NoError(t, s.PutBack(t.Context(), s.move()))
	require.Equal(t, map[string]string{"word-0": "true"}, s.keys(3))
}

// TestAMoveThatIsNotWhatWasDecidedAnyMoreIsNotMade: something changes between the last look and the
// write.
func TestAMoveThatIsNotWhatWasDecidedAnyMoreIsNotMade(t *testing.T) {
	for i, c := range []struct {
		name   string
		change func(*site)
		want   string
	}{
		{"the successor is cordoned", func(s *site) { s.patch(1, map[string]any{"spec": map[string]any{"unschedulable": true}}) }, "it is cordoned"},
		{"it goes to another location", func(s *site) { s.annotate(1, election.LocationKey, "elsewhere") }, "is not in the location any more"},
		{"its agent stops", func(s *site) { s.annotate(1, election.LastSeenKey, "1000") }, "is not fit to lead any more"},
		{"it is paused", func(s *site) { s.annotate(1, remediations.PauseKey, "true") }, remediations.PauseKey},
		{"somebody else has it lead", func(s *site) { s.annotate(1, election.LeaderKey, "true") }, "changed by another writer"},
		{"it is another machine by that name", func(s *site) {
			require.NoError(s.t, s.lab.Client().CoreV1().Nodes().Delete(s.t.Context(), s.name(1), metav1.DeleteOptions{}))
			_, err := s.lab.Client().CoreV1().Nodes().Create(s.t.Context(), onNode(s.name(1), s.location, with(election.LastSeenKey, fmt.Sprint(time.Now().Unix()))), metav1.CreateOptions{})
			require.NoError(s.t, err)
		}, "was replaced"},
		{"it is gone", func(s *site) {
			require.NoError(s.t, s.lab.Client().CoreV1().Nodes().Delete(s.t.Context(), s.name(1), metav1.DeleteOptions{}))
		}, "not found"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, fmt.Sprintf("late-%d", i), 3)
			before := s.node(0)
			once := false
			outcome, err := s.Move(t.Context(), s.move(), func() error {
				if !once {
					c.change(s)
				}
				once = true
				return nil
			})
			require.Equal(t, remediations.CallRefused, outcome)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, "nothing was changed")
			require.Equal(t, but(before), but(s.node(0)))
			require.Equal(t, "true", s.node(0).Annotations[election.LeaderKey])
		})
	}

	s := newSite(t, "asked", 3)
	outcome, err := s.Move(t.Context(), s.move(), func() error { return fmt.Errorf("a person paused it") })
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorContains(t, err, "a person paused it")
	asked := 0
	outcome, err = s.Move(t.Context(), s.move(), func() error {
		if asked++; asked > 1 {
			return fmt.Errorf("a person paused it just now")
		}
		s.annotate(1, "example.com/beat", "1")
		return nil
	})
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorContains(t, err, "a person paused it just now")
	require.Equal(t, map[string]string{"asked-0": "true"}, s.keys(3))
	for name, change := range map[string]func(*remediations.Move){
		"a key that is not on record": func(m *remediations.Move) { delete(m.Before, s.name(0)) },
		"another value":               func(m *remediations.Move) { v := "yes"; m.Before[s.name(0)] = &v },
		"another leader":              func(m *remediations.Move) { m.From = s.name(2) },
		"a node that is not there":    func(m *remediations.Move) { m.To = "nobody" },
		"to itself":                   func(m *remediations.Move) { m.To = m.From },
		"another location":            func(m *remediations.Move) { m.Location = "nowhere" },
	} {
		m := s.move()
		change(&m)
		outcome, err := s.Move(t.Context(), m, yes)
		require.Equal(t, remediations.CallRefused, outcome, name)
		require.Error(t, err, name)
		require.Equal(t, map[string]string{"asked-0": "true"}, s.keys(3), name)
	}
}

// TestAnAnswerThatIsLostIsNotAMoveThatWasNotMade, and the part of a broken-off move that was made
// is reported and undone.
func TestAnAnswerThatIsLostIsNotAMoveThatWasNotMade(t *testing.T) {
	patches := func(s *site) func(*http.Request) int {
		n := 0
		return func(r *http.Request) int {
			if r.Method == http.MethodPatch {
				n++
				return n
			}
			return 0
		}
	}
	for i, c := range []struct {
		name    string
		before  func(n int) lab.Verdict
		after   func(n int) lab.Verdict
		outcome remediations.CallOutcome
		want    string
		keys    []int
	}{
		{"the first answer is lost", nil, func(n int) lab.Verdict { return map[bool]lab.Verdict{true: lab.Reset}[n == 1] }, remediations.CallAccepted, "", []int{1}},
		{"the last answer is lost", nil, func(n int) lab.Verdict { return map[bool]lab.Verdict{true: lab.Reset}[n == 2] }, remediations.CallAccepted, "", []int{1}},
		{"all answers are lost", nil, func(n int) lab.Verdict { return map[bool]lab.Verdict{true: lab.Reset}[n > 0] }, remediations.CallAccepted, "", []int{1}},
		{"the first is refused", func(n int) lab.Verdict { return map[bool]lab.Verdict{true: lab.Forbidden}[n == 1] }, nil, remediations.CallRefused, "nothing was changed", []int{0}},
		{"the first is lost", func(n int) lab.Verdict { return map[bool]lab.Verdict{true: lab.Reset}[n > 0] }, nil, remediations.CallUnknown, "written so far: nothing is certain", []int{0}},
		{"the first meets a fault", func(n int) lab.Verdict { return map[bool]lab.Verdict{true: lab.InternalError}[n > 0] }, nil, remediations.CallUnknown, "written so far: nothing is certain", []int{0}},
		{"the last is refused", func(n int) lab.Verdict { return map[bool]lab.Verdict{true: lab.Forbidden}[n == 2] }, nil, remediations.CallUnknown, "written so far: kilo.squat.ai/leader on lost-", []int{0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, fmt.Sprintf("lost-%d", i), 3)
			count, counted := patches(s), 0
			s.proxy.Before(func(r *http.Request) lab.Verdict {
				counted = count(r)
				if c.before != nil {
					return c.before(counted)
				}
				return lab.Pass
			})
			s.proxy.After(func(r *http.Response) lab.Verdict {
				if c.after != nil && r.Request.Method == http.MethodPatch {
					return c.after(counted)
				}
				return lab.Pass
			})
			outcome, err := s.Move(t.Context(), s.move(), yes)
			require.Equal(t, c.outcome, outcome, "%v", err)
			if c.want == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.want)
			}
			have := s.keys(3)
			require.Len(t, have, len(c.keys))
			for _, k := range c.keys {
				require.Contains(t, have, s.name(k))
			}
			s.proxy.After(nil)
			s.proxy.Before(func(r *http.Request) lab.Verdict {
				return map[bool]lab.Verdict{true: lab.Forbidden}[r.Method == http.MethodPatch]
			})
			if c.outcome != remediations.CallRefused && !slices.Equal(c.keys, []int{0}) {
				require.ErrorContains(t, s.PutBack(t.Context(), s.move()), "putting back the lead")
			}
			s.proxy.Before(nil)
			require.NoError(t, s.PutBack(t.Context(), s.move()))
			require.Equal(t, map[string]string{s.name(0): "true"}, s.keys(3))
		})
	}
}

func TestARestoreLeavesWhatOthersChanged(t *testing.T) {
	s := newSite(t, "others", 3)
	moved := func() {
		outcome, err := s.Move(t.Context(), s.move(), yes)
		require.NoError(t, err)
		require.Equal(t, remediations.CallAccepted, outcome)
	}
	moved()
	s.annotate(1, election.LeaderKey, "mine")
	require.NoError(t, s.PutBack(t.Context(), s.move()))
	require.Equal(t, map[string]string{"others-0": "true", "others-1": "mine"}, s.keys(3))

	s.annotate(1, election.LeaderKey)
	moved()
	s.annotate(0, election.LeaderKey, "mine")
	require.NoError(t, s.PutBack(t.Context(), s.move()))
	require.Equal(t, map[string]string{"others-0": "mine"}, s.keys(3))

	s.annotate(0, election.LeaderKey, "true")
	moved()
	require.NoError(t, s.lab.Client().CoreV1().Nodes().Delete(t.Context(), "others-0", metav1.DeleteOptions{}))
	require.NoError(t, s.PutBack(t.Context(), s.move()))
	for i := range 2 {
		require.NotContains(t, s.node(i+1).Annotations, election.LeaderKey)
	}
}

// TestALookReadsAllPagesAndWhatTheRealPrometheusHas of the agents' results: the present ones, and
// the last one of an agent that is no longer scraped.
func TestALookReadsAllPagesAndWhatTheRealPrometheusHas(t *testing.T) {
	s := newSite(t, "seen", 4)
	s.page = 3
	nodes := s.lab.Client().CoreV1().Nodes()
	_, err := nodes.Create(t.Context(), onNode("far-0", "far", with(election.LastSeenKey, fmt.Sprint(time.Now().Unix()))), metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = nodes.Delete(context.WithoutCancel(t.Context()), "far-0", metav1.DeleteOptions{}) })
	say := func(lines ...string) { agentSays.Store(strings.Join(lines, "\n") + "\n") }
	t.Cleanup(func() { strangerSays.Store("") })
	line := func(path, src, from, dst string, value int) string {
		return fmt.Sprintf(`drydock_mesh_probe_success{path="%s",proto="tcp",node="%s",src_location="%s",src_role="member",dst_node="%s",dst_location="seen",dst_role="member"} %d`, path, src, from, dst, value)
	}
	local := []string{line("local", "seen-1", "seen", "seen-2", 1), line("local", "seen-2", "seen", "seen-1", 1), line("local", "seen-3", "seen", "seen-1", 0), line("local", "seen-1", "seen", "seen-0", 0)}
	cross := []string{line("cross", "far-0", "far", "seen-1", 0), line("cross", "far-0", "far", "seen-2", 0)}
	say(slices.Concat(local, cross)...)
	// Any pod that is scraped can export the metric: a series of another job than the agents' does
	// not count.
	strangerSays.Store(line("local", "seen-3", "seen", "seen-1", 1) + "\n" + line("local", "seen-3", "seen", "seen-2", 1) + "\n" +
		line("cross", "near-0", "near", "seen-1", 0) + "\n" + line("cross", "near-0", "near", "seen-2", 0) + "\n")
	var saw kind.Observation
	require.Eventually(t, func() bool {
		saw = s.Look(t.Context(), "seen")
		return saw.Unknown == "" && len(saw.Candidates) == 2 // whose leases the lab keeps
	}, 5*time.Minute, 200*time.Millisecond, "%v", &saw)
	require.Empty(t, saw.Held)
	require.Equal(t, "seen-0", saw.Leader)
	require.Equal(t, []string{"seen-1", "seen-2"}, successors(saw), saw.Refused)
	require.Contains(t, saw.Refused["seen-3"], "does not reach its siblings seen-1")
	require.False(t, saw.Reached)
	require.Contains(t, saw.ReachedWhy, "other locations do not reach 2 of 2 members: seen-1 from far; seen-2 from far")

	// The members' agents are no longer scraped: their last results count for a while. The others
	// see the location again.
	say(line("cross", "far-0", "far", "seen-1", 1), line("cross", "far-0", "far", "seen-2", 1))
	require.Eventually(t, func() bool {
		saw = s.Look(t.Context(), "seen")
		return saw.Reached && len(saw.Candidates) == 2
	}, 5*time.Minute, 200*time.Millisecond, "%v", &saw)
	require.Equal(t, []string{"seen-1", "seen-2"}, successors(saw))
	require.False(t, saw.Settled, "nobody has an address in the mesh")
	s.annotate(0, election.WireGuardIPKey, "10.4.0.1/16")
	require.True(t, s.Look(t.Context(), "seen").Settled)
	require.Contains(t, s.Look(t.Context(), `seen"} or vector(1) #`).Unknown, "Kilo counts no node")
}
