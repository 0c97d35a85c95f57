package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/logs"
	"drydock.dev/drydock/internal/mesh/probe"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/providers/kilo/election"
)

type options struct {
	node, namespace, service, listen, metrics, keyFile, topologyLabel, kubeconfig string
	interval                                                                      time.Duration
	payload                                                                       int
	logging                                                                       logs.Options
}

const (
	// minPayload is in bytes. Each path of the mesh is probed with a short and a long message. The
	// long one must be clearly longer than the short one, which is only a header.
	minPayload  = 256
	minInterval = time.Second
	maxInterval = time.Minute
)

func newRunCommand() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "run --node-name NODE --namespace NAMESPACE --key-file FILE",
		Short: "Answer the probes of other agents, and probe their nodes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return cli.Usage(err)
			}
			log, err := o.logging.New(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return run(cmd.Context(), log, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.node, "node-name", "", "name of the Node that the agent runs on (the pod's spec.nodeName)")
	f.StringVar(&o.namespace, "namespace", "", "namespace of the agents' Service (the pod's own)")
	f.StringVar(&o.service, "service", "drydock-agent", "headless Service whose EndpointSlices name the agents")
	f.StringVar(&o.listen, "listen", ":9099", "address of the probe port, for TCP and UDP")
	f.StringVar(&o.metrics, "metrics", ":9100", "address of /metrics, /healthz and /readyz")
	f.StringVar(&o.keyFile, "key-file", "", "file with the key that all agents share; during a change of the key, with the old and the new key, one per line")
	f.StringVar(&o.topologyLabel, "topology-label", election.DefaultTopologyLabel, "label of Nodes that names their location: the same as Kilo's --topology-label")
	f.DurationVar(&o.interval, "interval", 10*time.Second, "time between two rounds of probes")
	f.IntVar(&o.payload, "payload", probe.DefaultPayload, "bytes of the long probe: nearly the MTU of the mesh, less 48 for headers")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; without it the agent runs as its pod's ServiceAccount")
	o.logging.AddTo(f)
	return cmd
}

func (o options) check() error {
	var faults []error
	for _, must := range []struct{ flag, value, hint string }{
		{"node-name", o.node, "name the Node that the agent runs on, as the downward API gives it (spec.nodeName)"},
		{"namespace", o.namespace, "name the namespace of the agents' Service, as the downward API gives it (metadata.namespace)"},
		{"service", o.service, "name the agents' headless Service"},
		{"key-file", o.keyFile, "name the file with the key that all agents share; make one with: head -c 32 /dev/urandom | base64"},
		{"topology-label", o.topologyLabel, "name the same label as Kilo's --topology-label"},
	} {
		if must.value == "" {
			faults = append(faults, fmt.Errorf("--%s is missing: %s", must.flag, must.hint))
		}
	}
	if o.payload < minPayload || o.payload > probe.MaxSize {
		faults = append(faults, fmt.Errorf("--payload is %d; write %d to %d bytes", o.payload, minPayload, probe.MaxSize))
	}
	if o.interval < minInterval || o.interval > maxInterval {
		faults = append(faults, fmt.Errorf("--interval is %s; write %s to %s", text.Duration(o.interval), text.Duration(minInterval), text.Duration(maxInterval)))
	}
	for flag, address := range map[string]string{"listen": o.listen, "metrics": o.metrics} {
		if _, err := portOf(address); err != nil {
			faults = append(faults, fmt.Errorf("--%s %q: write an address and a port, or a port alone, for example :9099", flag, address))
		}
	}
	return errors.Join(faults...)
}

func portOf(address string) (uint16, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return uint16(n), err
}

func run(ctx context.Context, log logr.Logger, o options) error {
	klog.SetLogger(log.WithName("client"))
	restConfig, err := restConfigOf(o.kubeconfig)
	if err != nil {
		return err
	}
	a, err := newAgent(o, restConfig, log)
	if err != nil {
		return err
	}
	log.Info("Drydock's agent runs", "version", thisBuild().Now(), "node", o.node, "interval", o.interval.String(), "payload", a.payload)
	if err := a.start(ctx); err != nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

func restConfigOf(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		c, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("not running in a pod (%w): name the cluster with --kubeconfig FILE", err)
		}
		return c, nil
	}
	c, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading --kubeconfig %s: %w", kubeconfig, err)
	}
	if _, _, err := rest.DefaultServerUrlFor(c); err != nil { // err is left out: it quotes the address, which may hold a password
		return nil, fmt.Errorf("reading --kubeconfig %s: the API server's address is not a URL", kubeconfig)
	}
	return c, nil
}
