package engine

import (
	"context"
	"runtime"
	"testing"
	"weak"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// saying is a Fleet whose changes a test defines.
type saying struct {
	Fleet
	all, changed []*corev1.Node
	gone         []string
	cannot       bool
	err          error
	lists        int
}

func (f *saying) Nodes(context.Context) ([]*corev1.Node, error) {
	f.lists++
	return f.all, f.err
}

func (f *saying) Changed(context.Context) (changed []*corev1.Node, gone []string, ok bool) {
	changed, gone = f.changed, f.gone
	f.changed, f.gone = nil, nil
	return changed, gone, !f.cannot
}

// TestWhatIsRememberedOfANodeKeepsNoOlderOne: otherwise every Node would be in memory twice after a
// storm, until the next storm.
func TestWhatIsRememberedOfANodeKeepsNoOlderOne(t *testing.T) {
	node := func(version string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1", ResourceVersion: version}}
	}
	f := &saying{all: []*corev1.Node{node("10")}}
	e := New(Options{Config: modelConfig(), Fleet: f, Metrics: prometheus.NewRegistry(), Log: logr.Discard()})
	require.NoError(t, e.readNodes(t.Context()))
	first := weak.Make(e.roster.Node("a"))
	e.journal(e.roster.Node("a"))
	f.all, f.changed = nil, []*corev1.Node{node("11")}
	runtime.GC()
	require.NotNil(t, first.Value(), "control: it is kept until there is a newer one")
	require.NoError(t, e.readNodes(t.Context()))
	runtime.GC()
	require.Nil(t, first.Value())
	require.Equal(t, "11", e.roster.Node("a").ResourceVersion)
}

// TestTheRosterFollowsTheCache: the roster is updated by the cache's changes, and is never older
// than this process's own writes.
func TestTheRosterFollowsTheCache(t *testing.T) {
	node := func(name, uid, version string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid), ResourceVersion: version}}
	}
	f := &saying{all: []*corev1.Node{node("a", "1", "10"), node("b", "1", "10")}, changed: []*corev1.Node{node("a", "1", "10")}}
	e := New(Options{Config: modelConfig(), Fleet: f, Metrics: prometheus.NewRegistry(), Log: logr.Discard()})
	read := func() {
		t.Helper()
		require.NoError(t, e.readNodes(t.Context()))
	}
	version := func(name string) string {
		if n := e.roster.Node(name); n != nil {
			return n.ResourceVersion
		}
		return ""
	}
	wrote := func(over, written *corev1.Node) {
		m := e.remember(written.Name)
		m.over, m.written = over, written
		e.wrote[written.Name] = m
	}
	read()
	require.Equal(t, 1, f.lists, "at first all are listed, whatever is said to have changed")
	require.Equal(t, "10", version("b"))

	f.all = nil // from now on nothing needs to list them
	wrote(e.roster.Node("a"), node("a", "1", "12"))
	read()
	require.Equal(t, "12", version("a"), "the cache says nothing of the write yet")
	f.changed = []*corev1.Node{node("a", "1", "11")}
	read()
	require.Equal(t, "12", version("a"), "the cache shows what was before the write")
	read()
	require.Equal(t, "12", version("a"))
	f.changed = []*corev1.Node{node("a", "1", "13")}
	read()
	require.Equal(t, "13", version("a"), "the cache has caught up")
	require.Empty(t, e.wrote)
	require.Nil(t, e.memory["a"].written)

	wrote(e.roster.Node("a"), node("a", "1", "13"))
	read()
	require.Empty(t, e.wrote, "a write that changes nothing is never news")

	wrote(e.roster.Node("b"), node("b", "1", "14"))
	f.changed = []*corev1.Node{node("b", "2", "13")}
	read()
	require.Equal(t, "13", version("b"), "it is another Node")
	require.Empty(t, e.wrote)

	wrote(e.roster.Node("b"), node("b", "2", "15"))
	f.gone = []string{"b"}
	read()
	require.Empty(t, version("b"))
	require.NotContains(t, e.memory, "b")
	require.Empty(t, e.wrote)
	require.Equal(t, 1, f.lists)

	f.cannot, f.err = true, errLost
	require.Error(t, e.readNodes(t.Context()))
	f.cannot, f.err, f.all = false, nil, []*corev1.Node{node("c", "1", "16")}
	read()
	require.Equal(t, "16", version("c"), "what changed meanwhile was not said, so all are listed")
	require.Empty(t, version("a"))
	require.Equal(t, 3, f.lists)
}
