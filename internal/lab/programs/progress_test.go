package programs

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgressSaysHowFarTheBuildIs(t *testing.T) {
	one := &group{targets: make([]target, 2), packages: []sourcePackage{{"std", "/std", 50}, {"a", "/a", 30}}}
	two := &group{targets: make([]target, 1), packages: []sourcePackage{{"std", "/std", 50}, {"b", "/b", 20}}}
	p := newProgress(&bytes.Buffer{}, make([]target, 3))
	p.expect(one)
	p.expect(two)
	require.Equal(t, "fetching source", p.String())
	p.compiled(one, "std")
	require.Equal(t, "50 % compiled, 0 of 3 programs ready", p.String())
	p.compiled(one, "a")
	p.compiled(one, "go: downloading something")
	require.Equal(t, "80 % compiled, 0 of 3 programs ready", p.String())
	p.finished(one)
	p.compiled(two, "std")
	p.finished(two)
	require.Equal(t, "100 % compiled, 3 of 3 programs ready", p.String())
}
