// Command kubelet simulates the kubelet on a host of package hosts. It registers the node, and
// renews the node's lease and Ready condition at any API server that answers. It keeps its static
// pods running. Here, static pods are plain processes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Config is the content of the configuration file, which package hosts writes.
type Config struct {
	Node corev1.Node `json:"node"`
	// Servers are the URLs of the API servers, in the order of trying.
	Servers                   []string
	CAFile, CertFile, KeyFile string
	LeaseSeconds              int
	// Static are the command lines of the static pods, by name.
	Static map[string][]string
	// Dies is the path of a file. If it exists, the kubelet ends shortly after its start.
	Dies string
}

func main() {
	if err := run(); err != nil {
		slog.Error("the kubelet ends", "error", err)
		os.Exit(1)
	}
}

func run() error {
	path := flag.String("config", "", "configuration file")
	flag.Parse()
	data, err := os.ReadFile(*path)
	if err != nil {
		return err
	}
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("reading %s: %w", *path, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	slog.Info("the kubelet has started", "node", c.Node.Name, "pid", os.Getpid())
	if _, err := os.Stat(c.Dies); err == nil {
		// The kubelet must run long enough that systemd counts the unit as started.
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
		return errors.New("failed to run kubelet: the lab has requested this failure")
	}
	var wg sync.WaitGroup
	for name, command := range c.Static {
		wg.Go(func() { keep(ctx, name, command) })
	}
	wg.Go(func() { newNode(c).keep(ctx) })
	wg.Wait()
	slog.Info("the kubelet has been asked to end")
	return nil
}
