// Drydock-backtest computes what Drydock would have done in a period that Prometheus has recorded.
// The command `drydock backtest` starts it. It is a separate program, so that the program that
// repairs nodes does not contain its code.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"drydock.dev/drydock/deploy"
	"drydock.dev/drydock/internal/backtest"
	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/text"
)

var command = cli.Program{Name: "drydock backtest", Lines: func(err error) []string {
	var faults config.Faults
	if errors.As(err, &faults) {
		return []string{faults.Error()}
	}
	return []string{fmt.Sprintf("drydock backtest: %v", err)}
}}

func main() {
	backtest.BoundMemory()
	cli.Main(func(ctx context.Context, args []string) int { return execute(ctx, args, os.Stdout, os.Stderr) })
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return command.Execute(ctx, newCommand(time.Now), args, stdout, stderr)
}

type asked struct {
	config, compare, prometheus, http, rules, alertmanager, since, until, output, cures, resend, step, state, replica string

	tsdb     string // a flag of older versions, refused with a hint
	recorded bool
	now      func() time.Time
}

var formats = []string{"text", "json", "html"}

func newCommand(now func() time.Time) *cobra.Command {
	a := asked{now: now}
	cmd := &cobra.Command{
		Use:   "drydock-backtest --config FILE --prometheus URL",
		Short: "Show what Drydock would have done in the past",
		Long: "Backtest replays what Prometheus recorded through the same decisions that Drydock makes live, and prints what Drydock would\n" +
			"have done: with the past as it was, and as if each step had cured its node. It changes nothing. Policies that only observe\n" +
			"are replayed as if they enforced.",
		Annotations:       map[string]string{cobra.CommandDisplayNameAnnotation: "drydock backtest"},
		Args:              cobra.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return cli.FlagsFromEnvironment(cmd, os.LookupEnv, nil) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			// The report contains names that other users chose. text.Writer replaces control
			// characters, so that such a name cannot control the terminal.
			return a.run(cmd.Context(), &text.Writer{Out: cmd.OutOrStdout()}, cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.StringVar(&a.config, "config", "", "configuration file")
	f.StringVar(&a.compare, "compare", "", "second configuration file: the report shows what changes with it")
	f.StringVar(&a.prometheus, "prometheus", "", "URL of a Prometheus to ask, or of another server that has its API: Thanos, Mimir, VictoriaMetrics")
	f.StringVar(&a.http, "http-config", "", "file with Prometheus' http_config for --prometheus, and with sigv4 for AWS")
	f.StringVar(&a.tsdb, "tsdb", "", "")
	_ = f.MarkHidden("tsdb")
	f.StringVar(&a.rules, "rules", "", "folder of rule files, or one such file; without it, the rules that Drydock ships")
	f.BoolVar(&a.recorded, "recorded", false, "use the alerts that Prometheus recorded, and evaluate no rule")
	f.StringVar(&a.alertmanager, "alertmanager", "", "Alertmanager's configuration file, for its routes and inhibition; without it, the shipped example")
	f.StringVar(&a.since, "since", "30d", "length of the period before --until")
	f.StringVar(&a.until, "until", "", "end of the period, in RFC 3339; without it, now")
	f.StringVar(&a.cures, "cures", "", "how long after its call each step counts as a cure; without it, a usual time for each step")
	f.StringVar(&a.resend, "resend-delay", model.Duration(backtest.DefaultResend).String(), "how often Prometheus sends a firing alert again: the value of its --rules.alert.resend-delay")
	f.StringVar(&a.replica, "replica-label", "prometheus_replica", "external label that differs between the replicas of Prometheus; backtest drops it from the answers")
	f.StringVar(&a.step, "step", "", "interval at which backtest reads Nodes and recorded alerts; without it, the shortest evaluation interval of the rules, or 1m")
	f.StringVar(&a.state, "state", "", "file that keeps the answers from one run to the next: a run asks only for what the file lacks")
	f.StringVarP(&a.output, "output", "o", "text", "text, json or html")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	thisBuild().On(cmd)
	return cmd
}

func (a *asked) run(ctx context.Context, out, progress io.Writer) error {
	switch {
	case a.config == "":
		return cli.Usage(errors.New("--config is missing: give the path of the configuration file"))
	case a.tsdb != "":
		return cli.Usage(errors.New("--tsdb no longer exists: start a Prometheus on the folder, as docs/operate/backtest.md shows, and name it with --prometheus"))
	case a.prometheus == "":
		return cli.Usage(errors.New("--prometheus is missing: name the URL of a Prometheus"))
	case !slices.Contains(formats, a.output):
		return cli.Usagef("--output is %q; write text, json or html", a.output)
	case a.recorded && a.rules != "":
		return cli.Usage(errors.New("--recorded evaluates no rule: remove --recorded or --rules"))
	}
	from, until, err := a.period()
	if err != nil {
		return err
	}
	configs, past, err := a.inputs()
	if err != nil {
		return err
	}
	if cli.Terminal(progress) {
		b := &bar{out: progress, began: a.now(), now: a.now}
		past.Progress = b.show
		defer b.end()
	}
	var transport http.RoundTripper
	if a.http != "" {
		if transport, err = history.ReadTransport(a.http); err != nil {
			return err
		}
	}
	data, err := history.OpenPrometheus(a.prometheus, transport, past)
	if err != nil {
		return err
	}
	found, err := backtest.Backtest(ctx, data, from, until, configs...)
	if err := errors.Join(err, data.Close()); err != nil {
		return err
	}
	switch a.output {
	case "json":
		return found.JSON(out)
	case "html":
		return found.Page().HTML(out)
	}
	return found.Page().Text(out)
}

func (a *asked) period() (from, until time.Time, err error) {
	until = a.now()
	if a.until != "" {
		if until, err = time.Parse(time.RFC3339, a.until); err != nil {
			return from, until, cli.Usagef("--until %q is not a time in RFC 3339, for example 2026-03-04T12:00:00Z", a.until)
		}
	}
	since, err := model.ParseDuration(a.since)
	if err != nil || since <= 0 {
		return from, until, cli.Usagef("--since %q is not a duration, for example 30d", a.since)
	}
	return until.Add(-time.Duration(since)), until, nil
}

func (a *asked) inputs() (configs []backtest.Named, past history.Options, err error) {
	cures := backtest.UsualCures()
	if a.cures != "" {
		d, err := model.ParseDuration(a.cures)
		if err != nil || d <= 0 {
			return nil, past, cli.Usagef("--cures %q is not a duration, for example 5m", a.cures)
		}
		cures = cures.AllAfter(time.Duration(d))
	}
	resend, err := model.ParseDuration(a.resend)
	if err != nil || resend <= 0 {
		return nil, past, cli.Usagef("--resend-delay %q is not a duration, for example 1m", a.resend)
	}
	text, name := deploy.Alertmanager(), "the shipped alertmanager.yaml"
	if a.alertmanager != "" {
		if text, err = os.ReadFile(a.alertmanager); err != nil {
			return nil, past, fmt.Errorf("reading --alertmanager: %w", err)
		}
		name = a.alertmanager
	}
	for _, file := range []string{a.config, a.compare} {
		if file == "" {
			continue
		}
		c, _, err := config.Load(file, config.Options{SkipFiles: true})
		if err != nil {
			return nil, past, err
		}
		routing, err := backtest.ReadRouting(text)
		if err != nil {
			return nil, past, fmt.Errorf("reading %s: %w", name, err)
		}
		configs = append(configs, backtest.Named{Name: file, Options: backtest.Options{
			Config: backtest.Enforced(c.Core), Alertmanager: routing, BlindWhen: c.Alertmanager.BlindWhen, PollInterval: c.Alertmanager.PollInterval, Cures: cures,
			Resend: time.Duration(resend),
		}})
		if c.Core.ClusterLabel != "" {
			external := model.LabelSet{model.LabelName(c.Core.ClusterLabel): model.LabelValue(c.Core.ClusterValue)}
			if past.ExternalLabels != nil && !past.ExternalLabels.Equal(external) {
				return nil, past, cli.Usagef("--config and --compare are for different clusters, %s and %s: both must be for the same cluster", past.ExternalLabels, external)
			}
			past.ExternalLabels = external
		}
	}
	past.Matters = backtest.Matters(configs)
	past.Recorded, past.ReplicaLabel, past.State = a.recorded, a.replica, a.state
	backtest.Asks(configs, &past)
	if a.step != "" {
		d, err := model.ParseDuration(a.step)
		if err != nil || d <= 0 {
			return nil, past, cli.Usagef("--step %q is not a duration, for example 30s", a.step)
		}
		past.Step = time.Duration(d)
	}
	if a.rules != "" {
		past.Rules, err = history.ReadRules(a.rules)
	}
	return configs, past, err
}
