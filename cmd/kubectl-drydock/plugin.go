package main

import (
	"fmt"
	"io"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// fieldManager is the name under which the plugin writes; managedFields then tell a person's word from Drydock's work.
const fieldManager = "kubectl-drydock"

// plugin is what all commands share.
type plugin struct {
	genericiooptions.IOStreams
	flags *genericclioptions.ConfigFlags
	// ledger is the name of the ledger's ConfigMap.
	ledger string
	now    func() time.Time
	// connect makes the client. Tests put one in that no cluster is behind.
	connect func() (corev1client.CoreV1Interface, error)
}

func (p *plugin) connectByFlags() (corev1client.CoreV1Interface, error) {
	c, err := p.flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	// As kubectl prints them; the client's own way is a log line.
	c.WarningHandler = rest.NewWarningWriter(p.ErrOut, rest.WarningWriterOptions{Deduplicate: true})
	client, err := corev1client.NewForConfig(c)
	if err != nil {
		return nil, fmt.Errorf("finding the cluster: %w", err)
	}
	return client, nil
}

// say prints one sentence about what was done.
func (p *plugin) say(format string, args ...any) { say(p.Out, format, args...) }

func say(out io.Writer, format string, args ...any) {
	fmt.Fprintln(out, plain(fmt.Sprintf(format, args...)))
}

// stamp is a time as people and scripts read it.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }
