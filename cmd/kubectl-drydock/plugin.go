package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	authorizationv1client "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/internal/text"
)

type plugin struct {
	genericiooptions.IOStreams
	// asIs is standard output without the flags that Out adds to commands, for JSON and HTML.
	asIs  io.Writer
	flags *genericclioptions.ConfigFlags
	// commands adds this call's flags, for example --context, to each command that the output
	// proposes to a person.
	commands inspect.Commands
	// ledger is the name of a ConfigMap. lease is the name of the leader election's Lease.
	ledger, lease string
	dryRun        dryRun
	now           func() time.Time
	// Tests replace connect with a function that needs no cluster.
	connect func() (inspect.Client, error)
}

// reader takes the namespace and the names of the ledger and the Lease from the flags.
func (p *plugin) reader(c inspect.Client) *inspect.Reader {
	return &inspect.Reader{Client: c, Now: p.now, Namespace: *p.flags.Namespace, Ledger: p.ledger, Lease: p.lease}
}

func (p *plugin) writer(c inspect.Client) *actions.Writer {
	p.commands = p.bound(c)
	return &actions.Writer{Client: c, DryRun: bool(p.dryRun)}
}

func (p *plugin) connectByFlags() (inspect.Client, error) {
	c, err := p.flags.ToRESTConfig()
	if err != nil {
		return inspect.Client{}, fmt.Errorf("finding the cluster: %w", err)
	}
	if _, _, err := rest.DefaultServerUrlFor(c); err != nil { // err is left out: it quotes the address, which may hold a password
		return inspect.Client{}, errors.New("finding the cluster: the API server's address in the kubeconfig is not a URL")
	}
	// Print warnings as kubectl does; the client's default is a log line.
	c.WarningHandler = rest.NewWarningWriter(&text.Writer{Out: p.ErrOut}, rest.WarningWriterOptions{Deduplicate: true})
	clock := &inspect.Clock{}
	c.Wrap(clock.Wrap)
	c.Wrap(actions.Once)
	core, err := corev1client.NewForConfig(c)
	if err != nil {
		return inspect.Client{}, fmt.Errorf("finding the cluster: %w", err)
	}
	coordination, err := coordinationv1client.NewForConfig(c)
	if err != nil {
		return inspect.Client{}, fmt.Errorf("finding the cluster: %w", err)
	}
	authorization, err := authorizationv1client.NewForConfig(c)
	if err != nil {
		return inspect.Client{}, fmt.Errorf("finding the cluster: %w", err)
	}
	return inspect.Client{CoreV1Interface: core, LeasesGetter: coordination, SelfSubjectAccessReviewsGetter: authorization, Clock: clock, Cluster: inspect.NewCluster(p.context(), c.Host)}, nil
}

// context returns "" if no context is in use, for example in a pod.
func (p *plugin) context() string {
	if p.flags.Context != nil && *p.flags.Context != "" {
		return *p.flags.Context
	}
	raw, err := p.flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return ""
	}
	return raw.CurrentContext
}

func (p *plugin) say(format string, args ...any) {
	if p.dryRun {
		format += " (server dry run: nothing was written)"
	}
	say(p.Out, format, args...)
}

func (p *plugin) wrote(c inspect.Client, said string) { p.say("%s", c.Cluster.Says(said)) }

func say(out io.Writer, format string, args ...any) {
	fmt.Fprintln(out, plain(fmt.Sprintf(format, args...)))
}
