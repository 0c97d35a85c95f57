package kube

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// TestChangesAreThoseOfTheCache: each change is returned once. A Node that is gone is returned by
// its name. Heartbeats cause no notice.
func TestChangesAreThoseOfTheCache(t *testing.T) {
	store, notices := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), 0
	f := Fleet{Indexer: store, Changes: NewChanges()}
	handler := Noticing(f.Changes, func() { notices++ })
	node := func(name, version string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}
	changed := func() (nodes []*corev1.Node, gone []string) {
		nodes, gone, ok := f.Changed(t.Context())
		require.True(t, ok)
		return nodes, gone
	}
	first, beat := node("n1", "1"), node("n1", "2")
	require.NoError(t, store.Add(first))
	handler.OnAdd(first, true)
	nodes, gone := changed()
	require.Equal(t, []*corev1.Node{first}, nodes)
	require.Empty(t, gone)
	require.Equal(t, 1, notices)

	nodes, gone = changed()
	require.Empty(t, nodes, "it was given")
	require.Empty(t, gone)

	require.NoError(t, store.Update(beat))
	handler.OnUpdate(first, beat)
	nodes, _ = changed()
	require.Same(t, beat, nodes[0])
	require.Equal(t, 1, notices, "a heartbeat wakes nobody")

	require.NoError(t, store.Delete(beat))
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "n1", Obj: beat})
	nodes, gone = changed()
	require.Empty(t, nodes)
	require.Equal(t, []string{"n1"}, gone)
	require.Equal(t, 2, notices)
}

// TestChangesAreBounded: a replica that does not lead never takes the names. After that, all Nodes
// are listed.
func TestChangesAreBounded(t *testing.T) {
	f := Fleet{Indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), Changes: NewChanges()}
	n := &corev1.Node{}
	for i := range changesKept + 10 {
		n.Name = strconv.Itoa(i)
		f.Changes.add(n)
	}
	require.Empty(t, f.Changes.names)
	_, _, ok := f.Changed(t.Context())
	require.False(t, ok)
	_, _, ok = f.Changed(t.Context())
	require.True(t, ok, "from then on it can say")

	_, _, ok = Fleet{}.Changed(t.Context())
	require.False(t, ok, "nobody notes changes")
}

// TestACacheThatGoesBackIsNoted, also by a replica that does not lead. That happens when etcd is
// restored from a snapshot.
func TestACacheThatGoesBackIsNoted(t *testing.T) {
	f := Fleet{Changes: NewChanges()}
	handler := Noticing(f.Changes, func() {})
	node := func(uid types.UID, version string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: uid, ResourceVersion: version}}
	}
	handler.OnUpdate(node("a", "100"), node("a", "200"))
	handler.OnUpdate(node("a", "200"), node("b", "150"))
	handler.OnUpdate(node("a", "200"), node("a", "200"))
	_, at := f.WentBack()
	require.Zero(t, at, "a newer version, another Node of that name, and the same version again")
	handler.OnUpdate(node("a", "200"), node("a", "99"))
	what, at := f.WentBack()
	require.Equal(t, "Node n1 has resourceVersion 99, and had 200 before", what)
	require.False(t, at.IsZero())
	_, at = Fleet{}.WentBack()
	require.Zero(t, at, "nobody notes changes")
}
