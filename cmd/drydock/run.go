package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/logs"
	"drydock.dev/drydock/remediations/providers/kubeapi"
	"drydock.dev/drydock/webhook"
)

func newRunCommand() *cobra.Command {
	var file, kubeconfig, pprof string
	var logging logs.Options
	cmd := &cobra.Command{
		Use:   "run --config FILE",
		Short: "Receive alerts and, on the leader, repair nodes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return cli.Usage(errors.New("--config is missing: give the path of the configuration file"))
			}
			if err := checkProfilerAddress(pprof); err != nil {
				return err
			}
			log, err := logging.New(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return run(cmd.Context(), log, file, kubeconfig, pprof)
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file; without it Drydock runs as its pod's ServiceAccount")
	cmd.Flags().StringVar(&pprof, "pprof", "", "loopback address for Go's profiler, for example 127.0.0.1:6060; without it, no profiler runs")
	logging.AddTo(cmd.Flags())
	return cmd
}

// run ends when the replica loses the lead. The process then ends, so that no work of a former
// leader continues. If Drydock also repairs API servers, the process continues: see runApart.
func run(ctx context.Context, log logr.Logger, file, kubeconfig, pprof string) error {
	boundMemory()
	ctrllog.SetLogger(webhook.WithoutNormalErrors(log))
	klog.SetLogger(log.WithName("client"))
	cfg, warnings, err := config.Load(file, config.Options{})
	if err != nil {
		return err
	}
	for _, w := range warnings {
		log.Info("the configuration has a warning", "why", w.String())
	}
	restConfig, err := restConfigOf(kubeconfig)
	if err != nil {
		return err
	}
	if pprof != "" {
		runtime.SetMutexProfileFraction(mutexSample)
	}
	p, err := newProgram(cfg, restConfig, pprof, log)
	if err != nil {
		return err
	}
	log.Info("Drydock runs", "version", thisBuild().Now(), "mode", cfg.Mode, "config", file)
	if p.rescue != nil {
		return p.runApart(ctx)
	}
	return p.runManager(ctx)
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
	if err == nil {
		_, err = kubeapi.Address(c) // checked here, because a client's own error would quote an address with a password
	}
	if err != nil {
		return nil, fmt.Errorf("reading --kubeconfig %s: %w", kubeconfig, err)
	}
	return c, nil
}
