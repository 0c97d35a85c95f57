package remediations_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
)

func TestSelfTestOfAnotherClusterIsNotOurs(t *testing.T) {
	c := &Config{SelfTest: matchers(t, `alertname="DrydockSelfTest"`), Receiver: "drydock"}
	require.True(t, c.IsSelfTest(map[string]string{"alertname": "DrydockSelfTest", "cluster": "b"}))
	require.False(t, c.IsSelfTest(map[string]string{"alertname": "NodeNotReady"}))
	c.ClusterLabel, c.ClusterValue = "cluster", "a"
	require.True(t, c.IsSelfTest(map[string]string{"alertname": "DrydockSelfTest", "cluster": "a"}))
	require.False(t, c.IsSelfTest(map[string]string{"alertname": "DrydockSelfTest", "cluster": "b"}))
}
