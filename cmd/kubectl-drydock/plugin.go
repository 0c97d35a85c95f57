package main

import (
	"fmt"
	"io"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// fieldManager is the name under which the plugin writes; managedFields then tell a person's word from Drydock's work.
const fieldManager = "kubectl-drydock"

// plugin is what all commands share.
type plugin struct {
	genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags
	// ledger is the name of the ledger's ConfigMap, lease that of the Lease by which the replicas elect a leader.
	ledger, lease string
	dryRun        dryRun
	now           func() time.Time
	// connect makes the client. Tests put one in that no cluster is behind.
	connect func() (client, error)
}

// client reads and writes what the plugin needs.
type client struct {
	corev1client.CoreV1Interface
	coordinationv1client.LeasesGetter
	// clock is nil where no API server is asked.
	clock *serverClock
}

func (p *plugin) connectByFlags() (client, error) {
	c, err := p.flags.ToRESTConfig()
	if err != nil {
		return client{}, fmt.Errorf("finding the cluster: %w", err)
	}
	// As kubectl prints them; the client's own way is a log line.
	c.WarningHandler = rest.NewWarningWriter(p.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	clock := &serverClock{}
	c.Wrap(clock.wrap)
	core, err := corev1client.NewForConfig(c)
	if err != nil {
		return client{}, fmt.Errorf("finding the cluster: %w", err)
	}
	coordination, err := coordinationv1client.NewForConfig(c)
	if err != nil {
		return client{}, fmt.Errorf("finding the cluster: %w", err)
	}
	return client{core, coordination, clock}, nil
}

// say prints one sentence about what was done.
func (p *plugin) say(format string, args ...any) {
	if p.dryRun {
		format += " (server dry run: nothing was written)"
	}
	say(p.Out, format, args...)
}

func say(out io.Writer, format string, args ...any) {
	fmt.Fprintln(out, plain(fmt.Sprintf(format, args...)))
}

// stamp is a time as people and scripts read it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
