package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"drydock.dev/drydock/remediations"
)

func (p *plugin) newStatusCommand() *cobra.Command {
	var o output
	var watch bool
	cmd := &cobra.Command{
		Use:   "status [-w] [-o wide|json|yaml]",
		Short: "Show what Drydock is doing, and what holds it",
		Long: "Status shows the mode, the breakers, what Drydock waits for and which limits are in use, as its ledger says,\n" +
			"and then every repair on a node. With -o wide also until when, the cause, and the hold's own words.",
		Example: "  kubectl drydock status -o wide\n  kubectl drydock status -w",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			c, err := p.connect()
			if err != nil {
				return err
			}
			if watch {
				return p.follow(cmd.Context(), c, &o)
			}
			return p.status(cmd.Context(), c, &o)
		},
	}
	o.bind(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "print again what changes, until interrupted")
	cmd.Flags().StringVar(&p.ledger, "ledger", ledgerName, "name of the ledger's ConfigMap")
	return cmd
}

func (p *plugin) status(ctx context.Context, c client, o *output) error {
	s, err := p.read(ctx, c)
	if err != nil {
		return err
	}
	if o.to != nil {
		return o.print(s, p.Out)
	}
	now := p.now()
	printLines(p.Out, s.lines(now))
	rows := [][]string{statusHeader(o.wide())}
	for _, r := range s.Repairs {
		rows = append(rows, r.row(now, o.wide()))
	}
	printRepairs(&table{out: p.Out}, rows)
	return nil
}

func printRepairs(t *table, rows [][]string) {
	fmt.Fprintln(t.out)
	if len(rows) == 1 {
		fmt.Fprintln(t.out, "No node is under repair.")
		return
	}
	t.print(rows...)
}

func printLines(out io.Writer, lines []line) {
	said := ""
	for _, l := range lines {
		label := l.label + ":"
		if l.label == said {
			label = "" // the next of the same kind
		}
		said = l.label
		fmt.Fprintf(out, "%-10s%s\n", label, plain(l.text))
	}
}

func statusHeader(wide bool) []string {
	row := []string{"NODE", "REPAIR", "POLICY", "PHASE", "STEP", "AGE", "HOLD"}
	if wide {
		row = append(row, "UNTIL", "CAUSE", "MESSAGE")
	}
	return row
}

// row shows a repair as it is now.
func (r repair) row(now time.Time, wide bool) []string {
	node := r.Node
	switch {
	case r.Record != nil && r.Record.Pod != nil:
		node += " (" + r.Record.Pod.String() + ")"
	case r.Record != nil && r.Record.Location != "":
		node += " (leader of " + r.Record.Location + ")"
	case r.Target != "node":
		node += "/" + r.Target
	}
	if r.Record == nil {
		row := cells(node, "", "", "Malformed", "", "", string(remediations.RecordMalformed))
		if wide {
			row = append(row, cells("", "", r.Problem)...)
		}
		return row
	}
	rec := r.Record
	var hold, until string
	message := rec.Note
	if message == "" && len(rec.Moves) > 0 {
		message = "leadership moved from " + led(rec.Moves)
	}
	if !rec.Deadline.IsZero() && rec.Phase.InFlight() {
		until = stamp(rec.Deadline)
	}
	if rec.Hold != nil {
		hold, message = string(rec.Hold.Reason), rec.Hold.Message
		if rec.Hold.Until != nil {
			until = stamp(*rec.Hold.Until)
		}
	}
	if rec.Phase == remediations.Exhausted {
		message = fmt.Sprintf("a person must look%s; when the node is mended, `kubectl drydock reset %s`", leftWith(rec), r.Node)
	}
	row := cells(node, rec.ID, rec.Policy, string(rec.Phase), rec.Step.String(), age(now, rec.Began), hold)
	if wide {
		row = append(row, cells(until, cause(rec.Cause), message)...)
	}
	return row
}

// led says who had a location's leadership, one after the other.
func led(moves []remediations.Move) string {
	var out []string
	for i, m := range moves {
		if i == 0 {
			out = append(out, m.From)
		}
		out = append(out, m.To)
	}
	return strings.Join(out, " to ")
}

// leftWith says who has the leadership that an exhausted repair moved.
func leftWith(r *remediations.Record) string {
	switch {
	case len(r.Moves) == 0:
		return ""
	case len(r.Undo) == 0:
		return "; the leadership moved from " + led(r.Moves) + " and was put back to " + r.Moves[0].From
	}
	return "; the leadership moved from " + led(r.Moves) + " and is left there"
}

func cause(c remediations.Cause) string {
	if c.Alert != "" {
		return "alert/" + c.Alert
	}
	return "request/" + c.Request
}

// age is how long ago it was; nothing where the time is not known. A clock that runs behind gives 0 s, not a nonsense.
func age(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(0, now.Sub(then)))
}
