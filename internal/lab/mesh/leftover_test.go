package mesh_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/mesh"
)

// childKey is the environment variable that marks the copy of this test binary that the test kills.
const childKey = "DRYDOCK_MESH_CHILD"

// If the process of a mesh is killed, it leaves no process behind. Its namespaces have no names, so
// they are gone, too.
func TestAKilledMeshLeavesNothing(t *testing.T) {
	mesh.Need(t)
	if os.Getenv(childKey) != "" {
		n, err := mesh.New()
		require.NoError(t, err)
		p, err := n.StartProcess(t.Context(), "west-2", lab.Spec{Name: "sleep", Path: "sleep", Args: []string{"600"}, Log: filepath.Join(t.TempDir(), "log")})
		require.NoError(t, err)
		mine, err := os.Readlink("/proc/self/ns/net")
		require.NoError(t, err)
		var namespace string
		require.Eventually(t, func() bool {
			namespace, err = os.Readlink(fmt.Sprintf("/proc/%d/ns/net", p.PID()))
			return err == nil && namespace != mine // nsenter is now in the other namespace
		}, lab.Patience, time.Millisecond)
		fmt.Println("child", p.PID(), namespace)
		_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
		return
	}
	named, err := filepath.Glob("/run/netns/*")
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	child.Env = append(os.Environ(), childKey+"=1")
	stdin, err := child.StdinPipe()
	require.NoError(t, err)
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	var pid int
	var namespace string
	for lines := bufio.NewScanner(stdout); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "child "); ok {
			_, err := fmt.Sscan(text, &pid, &namespace)
			require.NoError(t, err)
			break
		}
	}
	require.NotZero(t, pid)
	mine, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	require.NotEqual(t, mine, namespace)
	require.NotEmpty(t, in(t, namespace))
	require.NoError(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	require.Eventually(t, func() bool { return len(in(t, namespace)) == 0 }, lab.Patience, 10*time.Millisecond)
	after, err := filepath.Glob("/run/netns/*")
	require.NoError(t, err)
	require.Equal(t, named, after)
}

// in returns the processes in a network namespace.
func in(t *testing.T, namespace string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	require.NoError(t, err)
	var inside []string
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && at == namespace {
			inside = append(inside, link)
		}
	}
	return inside
}

// echoes reports whether a pod answers at that address.
func echoes(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	return mesh.Exchange(c) == nil
}

// Two meshes have the same addresses, and do not affect each other.
func TestMeshesRunSideBySide(t *testing.T) {
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n, _, ctx := start(t)
			require.NoError(t, n.DropVXLAN("east-1"))
			require.Error(t, n.Send(ctx, "west-2", "east-3"))
			flows(t, n, "west-2", "cloud-2")
			require.NoError(t, n.Heal("east-1"))
			mute(t, n, 0, "it is healed")
		})
	}
}

func TestWhatAPodServesIsScrapedBesideTheMeshOrOverIt(t *testing.T) {
	mesh.Need(t)
	n, err := mesh.New()
	require.NoError(t, err)
	t.Cleanup(n.Close)
	_, err = n.Scraped("echo", mesh.EchoPort)
	require.NoError(t, err)
	l := lab.New(t, lab.Options{Components: lab.APIServerOnly, NodeSpecs: n.Specs()})
	k, err := n.StartKilo(t.Context(), l, 0)
	require.NoError(t, err)
	t.Cleanup(k.Stop)
	reached := func() (out []string) {
		for _, node := range n.Nodes() {
			if echoes(node.ScrapeAddress) {
				out = append(out, node.Name)
			}
		}
		return out
	}
	reaches := func(want ...string) { // on a busy machine the first scrape may be late
		require.Eventually(t, func() bool { return slices.Equal(want, reached()) }, lab.Patience, 100*time.Millisecond, "%v", want)
	}
	all := []string{"west-1", "west-2", "west-3", "east-1", "east-2", "east-3", "cloud-1", "cloud-2"}
	reaches(all...)
	require.NoError(t, n.DropNewVXLAN("west-1"))
	reaches(all...) // from outside the mesh, Prometheus reaches a pod that is cut off
	n.ScrapeFrom("cloud-2")
	reaches("west-1", "east-1", "east-2", "east-3", "cloud-1", "cloud-2")
	n.Unscraped("east-1")
	require.NotContains(t, reached(), "east-1")
}
