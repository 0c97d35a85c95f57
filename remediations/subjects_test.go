package remediations

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEachNodeIsATarget: also without a record and without an alert, and once only. The record of
// another target is not the node's.
func TestEachNodeIsATarget(t *testing.T) {
	c := &Config{Policies: []*Policy{{Name: "p"}}}
	own, leader := &Record{ID: "own"}, &Record{ID: "leader", Location: "l0"}
	for name, j := range map[string]Journal{
		"nothing on the Node":      {},
		"an alert":                 {Alerts: []Alert{{Policy: "p"}}},
		"another target's record":  {Records: map[string]*Record{LocationKey: leader}},
		"a record of its own, too": {Record: own, Records: map[string]*Record{LocationKey: leader}},
	} {
		require.Equal(t, []Subject{{Key: NodeRepairKey, Record: j.Record}}, c.Subjects(KindNode, j), name)
		require.Same(t, j.Record, j.On(NodeRepairKey), name)
		require.Same(t, j.Records[LocationKey], j.On(LocationKey), name)
	}
}
