package civosim

import (
	"testing"

	"github.com/civo/civogo"
	"github.com/stretchr/testify/require"
)

func TestRefusalsHaveCivosCodes(t *testing.T) {
	s, _, _ := start(t)
	for name, tc := range map[string]struct {
		key, region string
		call        func(*civogo.Client) error
		want        error
		text        string
	}{
		"wrong key": {
			key:  "another",
			call: func(c *civogo.Client) error { _, err := c.HardRebootInstance("i-1"); return err },
			want: civogo.AuthenticationError,
		},
		"wrong region": {
			region: "NYC1",
			call:   func(c *civogo.Client) error { _, err := c.ListKubernetesClusterInstances(cluster); return err },
			want:   civogo.CommonError, text: "database_region_not_found",
		},
		"unknown cluster": {
			call: func(c *civogo.Client) error { _, err := c.ListKubernetesClusterInstances("other"); return err },
			want: civogo.DatabaseKubernetesClusterNotFoundError,
		},
		"unknown instance": {
			call: func(c *civogo.Client) error { _, err := c.HardRebootInstance("i-2"); return err },
			want: civogo.DatabaseInstanceNotFoundError,
		},
		"unknown hostname": {
			call: func(c *civogo.Client) error { _, err := c.RecycleKubernetesCluster(cluster, "node"); return err },
			want: civogo.DatabaseKubernetesNodeNotFoundError,
		},
		"unknown pool": {
			call: func(c *civogo.Client) error {
				_, err := c.DeleteKubernetesClusterPoolInstance(cluster, "other", "i-1")
				return err
			},
			want: civogo.DatabaseClusterPoolNotFoundError,
		},
		"instance of another pool": {
			call: func(c *civogo.Client) error {
				_, err := c.DeleteKubernetesClusterPoolInstance(cluster, "gpus", "i-1")
				return err
			},
			want: civogo.DatabaseClusterPoolInstanceNotFoundError,
		},
	} {
		t.Run(name, func(t *testing.T) {
			key, in := apiKey, region
			if tc.key != "" {
				key = tc.key
			}
			if tc.region != "" {
				in = tc.region
			}
			err := tc.call(client(t, s, key, in))
			require.ErrorIs(t, err, tc.want)
			require.ErrorContains(t, err, tc.text)
			require.Empty(t, s.Done(Any))
		})
	}
}
