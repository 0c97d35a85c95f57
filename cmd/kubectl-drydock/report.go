package main

import (
	"context"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/internal/report"
)

var reportFormats = []string{"text", "json", "html"}

func (p *plugin) newReportCommand() *cobra.Command {
	var of inspect.Scope
	var since, format string
	var prometheus seriesOptions
	cmd := &cobra.Command{
		Use:   "report [NODE... | -l SELECTOR] [--since 7d] [--prometheus URL] [-o text|json|html]",
		Short: "Show what Drydock did, and what it would have done",
		Long: "Report counts the repairs that ended in this time, and the repairs on record now, by policy and by node: their steps,\n" +
			"outcomes and times, and what a policy in observe mode would have done. It reads the histories on the Nodes and the ledger.\n" +
			"Only Prometheus has past holds and breakers: give its URL with --prometheus. -o html writes one page with a\n" +
			"timeline, for a browser or a printer.",
		Example: "  kubectl drydock report --since 30d\n  kubectl drydock report -o html > report.html\n  kubectl drydock report --prometheus http://localhost:9090",
		RunE: func(cmd *cobra.Command, names []string) error {
			if of.Names = names; len(names) > 0 && of.Selector != "" {
				return cli.Usagef("nodes and -l were both given; give one of them")
			}
			if _, err := labels.Parse(of.Selector); err != nil {
				return cli.Usagef("--selector %q is not a label selector: %w", of.Selector, err)
			}
			var c inspect.Client
			page := func(r *report.Report) *report.Page {
				page := r.Page()
				page.Summary = c.Cluster.Says(page.Summary)
				return page
			}
			write, ok := map[string]func(*report.Report) error{
				"text": func(r *report.Report) error { return page(r).Text(p.Out) },
				"json": func(r *report.Report) error { return r.JSON(p.asIs) },
				"html": func(r *report.Report) error { return page(r).HTML(p.asIs) },
			}[format]
			if !ok {
				return cli.Usagef("--output is %q; write %s", format, strings.Join(reportFormats, ", "))
			}
			length, err := model.ParseDuration(since)
			if err != nil || length <= 0 {
				return cli.Usagef("--since is %q; write how far the report goes back, for example 7d, 36h or 1h30m", since)
			}
			if err := prometheus.check(); err != nil {
				return err
			}
			if c, err = p.connect(); err != nil {
				return err
			}
			r, err := p.report(cmd.Context(), c, of, time.Duration(length), prometheus)
			if err != nil {
				return err
			}
			return write(r)
		},
	}
	selects(cmd, &of.Selector)
	cmd.Flags().StringVar(&since, "since", "7d", "how far the report goes back, for example 7d or 36h")
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text, json or html")
	cmd.Flags().StringVar(&prometheus.address, "prometheus", "", "URL of a Prometheus that scrapes Drydock, for past holds and breakers")
	cmd.Flags().StringVar(&prometheus.label, "prometheus-label", "", "label of this cluster's series, for example cluster=prod-1")
	cmd.Flags().StringVar(&p.ledger, "ledger", inspect.LedgerName, "name of the ledger's ConfigMap")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(reportFormats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("since", cobra.FixedCompletions([]string{"1d", "7d", "30d"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// report returns an error only if Nodes cannot be read. The report says what else is missing.
func (p *plugin) report(ctx context.Context, c inspect.Client, of inspect.Scope, length time.Duration, prometheus seriesOptions) (*report.Report, error) {
	in, err := p.reader(c).Report(ctx, of, length)
	if err != nil {
		return nil, err
	}
	if prometheus.address != "" {
		if in.Series, err = prometheus.read(ctx, in.From, in.To); err != nil {
			in.Series, in.SeriesProblem = nil, err.Error()
		}
	}
	return report.New(in), nil
}
