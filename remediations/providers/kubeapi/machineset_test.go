package kubeapi

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestTheRecordOfAMachineSet: the machine, its set, and when the youngest of the set's machines was
// made.
func TestTheRecordOfAMachineSet(t *testing.T) {
	then := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	made := func(name, set string, at time.Time) (m Machine) {
		yes := true
		m.Name, m.UID, m.CreationTimestamp = name, types.UID("uid-"+name), metav1.NewTime(at)
		m.OwnerReferences = []metav1.OwnerReference{{Kind: "MachineSet", Name: set, UID: "uid-s", Controller: &yes}}
		if set != "s" {
			m.OwnerReferences[0].UID = "uid-other"
		}
		return m
	}
	all := []Machine{made("a", "s", then), made("b", "s", then.Add(time.Minute)), made("c", "s", then.Add(time.Second)), made("d", "other", then.Add(time.Hour))}
	owned := OwnedBy(all, "uid-s")
	require.Len(t, owned, 3)
	var set MachineSet
	require.NoError(t, json.Unmarshal([]byte(`{"kind":"MachineSet","metadata":{"name":"s","uid":"uid-s"},"status":{"replicas":3}}`), &set))
	require.Equal(t, 1, set.Wanted())

	b := BeforeOf(&all[0], "lab://a", &set, owned)
	require.Equal(t, then.Add(time.Minute), b.Newest)
	require.NoError(t, b.Whole())
	require.Equal(t, Succession{Set: "MachineSet s", Old: "it is there", ProviderID: "lab://a", Newest: b.Newest, Seen: 3, Wanted: 1}, b.Succession(&set, "MachineSet s", "it is there"))

	for name, cut := range map[string]func(*SetBefore){
		"machine": func(b *SetBefore) { b.Machine = "" }, "uid": func(b *SetBefore) { b.UID = "" }, "provider ID": func(b *SetBefore) { b.ProviderID = "" },
		"set": func(b *SetBefore) { b.Set = "" }, "uid of the set": func(b *SetBefore) { b.SetUID = "" }, "newest": func(b *SetBefore) { b.Newest = time.Time{} },
	} {
		of := b
		cut(&of)
		require.Error(t, of.Whole(), name)
	}
}
