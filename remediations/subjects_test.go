package remediations

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEachNodeIsATarget: Subjects has every node exactly once, also without a record or an alert.
// The record of another target on the Node is not the node's own.
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
