package lab

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAPartWhosePortIsTakenGetsAnother(t *testing.T) {
	f, err := openFolder(t.TempDir())
	require.NoError(t, err)
	l := &Lab{folder: f, options: Options{Out: t.Output()}, began: time.Now(), processes: map[string]*Process{}}
	var tried []int
	p, ports, err := l.startOnPorts(t.Context(), 1, func(ports []int) Spec {
		tried = append(tried, ports[0])
		if len(tried) == 1 {
			return Spec{Name: "part", Path: "sh", Args: []string{"-c", "echo bind: address already in use; exit 1"}, ReadyURL: "http://" + address(ports[0])}
		}
		return Spec{Name: "part", Path: "sleep", Args: []string{"600"}}
	})
	require.NoError(t, err)
	p.Kill()
	require.Len(t, tried, 2)
	require.Equal(t, tried[1:], ports)
	require.NotEqual(t, tried[0], tried[1])
}
