package soak

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestASampleIsOneCaseAndTheSoakIsAll(t *testing.T) {
	cases := map[string]int{"a": 1, "b": 2, "c": 3}
	t.Setenv("DRYDOCK_SOAK", "")
	seen := map[string]int{}
	for len(seen) < len(cases) { // each call returns another case
		one := OneOf(t, cases)
		require.Len(t, one, 1)
		for name, v := range one {
			seen[name] = v
		}
	}
	require.Equal(t, cases, seen)

	t.Setenv("DRYDOCK_SOAK", "1")
	require.Equal(t, cases, OneOf(t, cases))
}
