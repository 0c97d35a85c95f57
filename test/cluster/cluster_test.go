package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/cluster"
	"drydock.dev/drydock/internal/lab/missing"
)

// These are the environment variables that `make cluster-test` sets. Without wanted the tests are
// skipped, because they need root and use both processors for minutes. With KUBECONFIG=FILE
// VALUES=FILE it also sets the other two, and the tests run on that cluster, without root.
const (
	wanted     = "DRYDOCK_CLUSTER"
	kubeconfig = "DRYDOCK_CLUSTER_KUBECONFIG"
	values     = "DRYDOCK_CLUSTER_VALUES"
)

// shared is the cluster that all tests use. Each repair that a test causes must end before the next
// test begins.
var shared struct {
	built   cluster.Built
	lacks   error // what this machine lacks for the cluster
	cluster *cluster.Cluster
	err     error
}

func TestMain(m *testing.M) {
	if os.Getenv(wanted) != "" && os.Getenv(kubeconfig) == "" {
		shared.lacks = enter()
	}
	code := m.Run()
	if shared.cluster != nil {
		if err := shared.cluster.End(); err != nil {
			fmt.Fprintln(os.Stderr, "cluster:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// enter runs this program again in a network namespace of its own.
func enter() error {
	if err := cluster.Supported(); err != nil {
		return err
	}
	machine, built, err := cluster.Prepare(context.Background(), os.Stderr)
	if err != nil {
		return err
	}
	machine.Close() // no test needs it
	shared.built = built
	return nil
}

// start gives a test the lab's cluster, with every node Ready. The test breaks hosts.
func start(t *testing.T) (*cluster.Cluster, context.Context) {
	t.Helper()
	if os.Getenv(kubeconfig) != "" {
		t.Skip("THIS NEEDS ROOT ON THE NODES: make cluster-test without KUBECONFIG has it")
	}
	return startAny(t)
}

// startAny gives a test the lab's cluster, or a person's own. The test only uses the API server.
func startAny(t *testing.T) (*cluster.Cluster, context.Context) {
	t.Helper()
	if os.Getenv(wanted) == "" {
		t.Skip("A CLUSTER OF REAL KUBELETS IS NOT TESTED HERE: make cluster-test does")
	}
	missing.Need(t, "A CLUSTER OF REAL KUBELETS", shared.lacks)
	if shared.cluster == nil && shared.err == nil {
		shared.cluster, shared.err = begin(context.WithoutCancel(t.Context()))
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("logs: %s", shared.cluster.Keep())
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), lab.Patience)
	t.Cleanup(cancel)
	return shared.cluster, ctx
}

func begin(ctx context.Context) (*cluster.Cluster, error) {
	o := cluster.Options{Built: shared.built, Out: os.Stderr}
	file := os.Getenv(kubeconfig)
	if file == "" {
		return cluster.Start(ctx, o)
	}
	var err error
	if o.Built, err = cluster.PrepareOwn(ctx, os.Stderr); err != nil {
		return nil, err
	}
	return cluster.Connect(ctx, file, os.Getenv(values), o)
}

// TestTheCommandOnReachesAHost: the command runs as root, but without the right to set the
// machine's clock. The test only reads what the command may do.
func TestTheCommandOnReachesAHost(t *testing.T) {
	c, ctx := start(t)
	dir, err := c.Commands()
	require.NoError(t, err)
	on := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, filepath.Join(dir, "on"), args...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	name, err := on("worker-2", "hostname")
	require.NoError(t, err, name)
	require.Equal(t, "worker-2", name)
	for _, process := range []string{"self", "1"} {
		line, err := on("worker-2", "grep", "CapEff", "/proc/"+process+"/status")
		require.NoError(t, err, line)
		var bits uint64
		_, err = fmt.Sscanf(line, "CapEff: %x", &bits)
		require.NoError(t, err, line)
		require.NotZero(t, bits&(1<<unix.CAP_SYS_ADMIN), "%s is root on the host", process)
		require.Zero(t, bits&(1<<unix.CAP_SYS_TIME), process)
	}
	said, err := on("worker-9", "hostname")
	require.Error(t, err)
	require.Contains(t, said, "host worker-9 does not run")
}
