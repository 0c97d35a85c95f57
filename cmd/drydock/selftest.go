package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/selftest"
)

func newSelfTestCommand() *cobra.Command {
	var file, kubeconfig string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "selftest --config FILE",
		Short: "Wait until an alert has reached Drydock, and fail if none does",
		Long: "Selftest reads from the ledger whether alerts reach Drydock from Prometheus through Alertmanager, and whether Drydock may\n" +
			"write on Nodes. The exit code is 0 as soon as the self-test alert arrives, and 1 if it does not arrive within --timeout or\n" +
			"the API server refuses Drydock's writes. `helm test` runs this command.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				return cli.Usage(errors.New("--config is missing: give the path of the configuration file"))
			}
			cfg, _, err := config.Load(file, config.Options{SkipFiles: true})
			if err != nil {
				return printFaults(cmd.OutOrStdout(), err)
			}
			if len(cfg.Core.SelfTest) == 0 {
				return errors.New("alertmanager.selfTest is empty, so there is no alert to test with: remove the key to get the default alert, or do not run this test")
			}
			restConfig, err := restConfigOf(kubeconfig)
			if err != nil {
				return err
			}
			client, err := kubernetes.NewForConfig(restConfig)
			if err != nil {
				return fmt.Errorf("making the client of the API server: %w", err)
			}
			ctx, stop := context.WithTimeout(cmd.Context(), timeout)
			defer stop()
			return awaitSelfTest(ctx, kube.LedgerStore{Client: client, Namespace: cfg.Ledger.Namespace, Name: cfg.Ledger.Name}, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&file, "config", "", "configuration file")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig file; without it the pod's ServiceAccount is used")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "how long to wait")
	return cmd
}

func awaitSelfTest(ctx context.Context, store kube.LedgerStore, out io.Writer) error {
	again := time.NewTicker(2 * time.Second)
	defer again.Stop()
	said := ""
	for {
		ok, answer := selfTestAnswer(ctx, store)
		switch {
		case ctx.Err() != nil && said == "":
			return errors.New("the self-test did not succeed: the API server gave no answer in time; check that it can be reached")
		case ctx.Err() != nil:
			return fmt.Errorf("the self-test did not succeed in time; the last answer: %s", said)
		}
		if answer != said {
			said = answer
			if _, err := fmt.Fprintln(out, answer); err != nil {
				return fmt.Errorf("printing the answer, %w", err)
			}
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-again.C:
		}
	}
}

// selfTestAnswer reads the ledger. ok is true if the self-test's alert arrives.
func selfTestAnswer(ctx context.Context, store kube.LedgerStore) (ok bool, answer string) {
	data, _, err := store.Load(ctx)
	if err != nil {
		return false, fmt.Sprintf("the ledger cannot be read: %v", err)
	}
	l, err := ledger.Decode(data)
	if err != nil {
		return false, fmt.Sprintf("the ledger cannot be understood: %v", err)
	}
	state := l.Status.SelfTest
	switch {
	case l.Status.Aside != "":
		return false, l.Status.Aside
	case l.Status.Denied != "":
		return false, l.Status.Denied
	case state.State == "":
		return false, "the ledger has no result of the self-test yet: check that a replica leads"
	case state.State != selftest.OK:
		return false, fmt.Sprintf("%s: %s", state.State, state.Message)
	case time.Since(l.Arrival) > selftest.YoungFor:
		return false, fmt.Sprintf("the last arrival was at %s, which is more than %s ago: check that a replica leads", l.Arrival.Format(time.RFC3339), text.Duration(selftest.YoungFor))
	}
	return true, fmt.Sprintf("%s, last arrival %s", state.State, l.Arrival.Format(time.RFC3339))
}
