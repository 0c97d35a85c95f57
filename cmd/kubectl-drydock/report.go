package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/report"
	"drydock.dev/drydock/remediations"
)

// reportFormats are what -o of a report may be.
var reportFormats = []string{"text", "json", "html"}

func (p *plugin) newReportCommand() *cobra.Command {
	var of scope
	var since, format string
	var prometheus seriesOptions
	cmd := &cobra.Command{
		Use:   "report [NODE... | -l SELECTOR] [--since 7d] [--prometheus URL] [-o text|json|html]",
		Short: "Show what Drydock did in a time, and would have done",
		Long: "Report counts the repairs that ended since then, and those on record, by policy and by node: their steps, outcomes and times,\n" +
			"and what a policy in observe mode would have done. It reads the Nodes' histories and the ledger. Holds and breakers that are over\n" +
			"are known to Prometheus alone: name it with --prometheus. With -o html it is one page for a browser or a printer, with a timeline.",
		Example: "  kubectl drydock report --since 30d\n  kubectl drydock report -o html > report.html\n  kubectl drydock report --prometheus http://localhost:9090",
		RunE: func(cmd *cobra.Command, names []string) error {
			if of.names = names; len(names) > 0 && of.selector != "" {
				return cli.Usagef("nodes and -l were both given; give one of them")
			}
			if _, err := labels.Parse(of.selector); err != nil {
				return cli.Usagef("--selector %q is not a label selector: %w", of.selector, err)
			}
			write, ok := map[string]func(*report.Report) error{
				"text": func(r *report.Report) error { return r.Page().Text(p.Out) },
				"json": func(r *report.Report) error { return r.JSON(p.Out) },
				"html": func(r *report.Report) error { return r.Page().HTML(p.Out) },
			}[format]
			if !ok {
				return cli.Usagef("--output is %q; write %s", format, strings.Join(reportFormats, ", "))
			}
			length, err := model.ParseDuration(since)
			if err != nil || length <= 0 {
				return cli.Usagef("--since is %q; write how far the report goes back, as 7d, 36h or 1h30m", since)
			}
			if err := prometheus.check(); err != nil {
				return err
			}
			c, err := p.connect()
			if err != nil {
				return err
			}
			r, err := p.report(cmd.Context(), c, of, time.Duration(length), prometheus)
			if err != nil {
				return err
			}
			return write(r)
		},
	}
	selects(cmd, &of.selector)
	cmd.Flags().StringVar(&since, "since", "7d", "how far the report goes back, as 7d or 36h")
	cmd.Flags().StringVarP(&format, "output", "o", "text", "text, json or html")
	cmd.Flags().StringVar(&prometheus.address, "prometheus", "", "URL of a Prometheus that scrapes Drydock, for holds and breakers that are over")
	cmd.Flags().StringVar(&prometheus.label, "prometheus-label", "", "label that the series of this cluster have, as cluster=prod-1")
	cmd.Flags().StringVar(&p.ledger, "ledger", ledgerName, "name of the ledger's ConfigMap")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(reportFormats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("since", cobra.FixedCompletions([]string{"1d", "7d", "30d"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// report gathers and counts. What could not be read but for the Nodes, the report says.
func (p *plugin) report(ctx context.Context, c client, of scope, length time.Duration, prometheus seriesOptions) (*report.Report, error) {
	now := p.now()
	in := report.Input{From: now.Add(-length), To: now, Of: of.words()}
	known := false
	err := of.nodes(ctx, c, func(n *corev1.Node) {
		one := report.Node{Name: n.Name, Annotations: map[string]string{}}
		for key, value := range n.Annotations {
			if remediations.Owned(key) {
				one.Annotations[key], known = value, true
			}
		}
		in.Nodes = append(in.Nodes, one)
	})
	if err != nil {
		return nil, err
	}
	l, err := p.readLedger(ctx, c)
	if err != nil {
		return nil, err
	}
	if l.missing && !known {
		return nil, fmt.Errorf("no Drydock was found: %s, and no node has anything that Drydock wrote; name its ledger with -n and --ledger where it is elsewhere", l.Problem)
	}
	in.Ledger, in.LedgerProblem = l.whole, l.Problem
	if prometheus.address != "" {
		if in.Series, err = prometheus.read(ctx, in.From, in.To); err != nil {
			in.Series, in.SeriesProblem = nil, err.Error()
		}
	}
	return report.New(in), nil
}

// words say which nodes were asked for; empty: all.
func (s scope) words() string {
	if s.selector != "" {
		return "nodes with " + s.selector
	}
	return strings.Join(s.names, ", ")
}
