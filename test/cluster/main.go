// Command cluster runs a Kubernetes cluster with real kubelets on this machine, with Drydock from
// its chart. It prints how to reach the cluster and which faults to try. It removes everything when
// it is interrupted.
package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"drydock.dev/drydock/internal/lab/cluster"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if err := cluster.Supported(); err != nil {
		return err
	}
	began := time.Now()
	machine, built, err := cluster.Prepare(ctx, os.Stderr)
	if err != nil {
		return err
	}
	defer machine.Close()
	fmt.Println("Starting a cluster of three nodes on this machine: real kubelets, containerd and systemd, Drydock from its chart.")
	port, err := freePort(ctx, machine)
	if err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{APIServerPort: port, Built: built, Out: os.Stdout})
	if err != nil {
		return err
	}
	defer c.Close()
	return show(ctx, c, machine, began)
}

// The port is free in both networks, this machine's and the hosts', so that one kubeconfig works in
// both.
func freePort(ctx context.Context, machine *cluster.Machine) (int, error) {
	listener, err := machine.Listen(ctx, "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(port)
}

func show(ctx context.Context, c *cluster.Cluster, machine *cluster.Machine, began time.Time) error {
	page, err := c.StartPage(ctx, "")
	if err != nil {
		return err
	}
	defer page.Stop()
	for _, at := range []string{c.APIServerURL(), c.PrometheusURL(), c.AlertmanagerURLs()[0], page.Origin} {
		u, err := url.Parse(at)
		if err != nil {
			return err
		}
		end, err := machine.Show(ctx, u.Host)
		if err != nil {
			return err
		}
		defer end()
	}
	bin, err := c.Commands()
	if err != nil {
		return err
	}
	fmt.Printf(`
The cluster is ready after %.0f s. In another terminal, as root:

  export KUBECONFIG=%s PATH=%s:$PATH

  page          %s
  Prometheus    %s
  Alertmanager  %s
  logs          %s

Break a node, one at a time, and watch the page or kubectl drydock status -w. The times of the shipped rules are divided by %d.

  The kubelet hangs, and Drydock restarts it (within two minutes):

    on worker-1 systemctl kill -s STOP kubelet

  A disk is almost full, and Drydock drains and reboots the node (within five minutes; a boot empties the folder):

    on worker-2 fallocate -l %s %s/full

  The container runtime stops, and Drydock restarts the kubelet, which needs the runtime (within two minutes):

    on worker-3 systemctl stop containerd

Ctrl-C takes the cluster down.
`, time.Since(began).Seconds(), c.AdminKubeconfig(), bin, page.Address, c.PrometheusURL(), c.AlertmanagerURLs()[0], c.Hosts.LogDir(),
		cluster.Faster, cluster.Fill, cluster.TemporaryDir)
	<-ctx.Done()
	fmt.Println("\nTaking the cluster down.")
	return nil
}
