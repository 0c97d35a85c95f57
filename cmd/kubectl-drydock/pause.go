package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/remediations"
)

// maxWhy bounds a reason: it is shown in Events and tables, and shares the Node with the records.
const maxWhy = 256

// reason makes --why fit for an annotation of one line.
func reason(why string) (string, error) {
	if why = plain(why); len(why) > maxWhy {
		return "", cli.Usagef("--why has %d bytes; give at most %d", len(why), maxWhy)
	}
	return why, nil
}

func (p *plugin) newPauseCommand() *cobra.Command {
	var why, selector string
	var length model.Duration
	cmd := &cobra.Command{
		Use:     "pause NODE... | -l SELECTOR [--for 2h] [--why TEXT]",
		Short:   "Keep Drydock from doing anything new to a node",
		Long:    "Pause holds whatever Drydock would do next to the node, also in the middle of a repair: what was issued already is\nstill verified and recorded, nothing new starts. Without --for, until somebody resumes it.",
		Example: "  kubectl drydock pause node-3 --for 2h --why 'disk swap, ticket 4711'\n  kubectl drydock pause -l topology.kubernetes.io/zone=fra1 --for 2h",
		RunE: func(cmd *cobra.Command, nodes []string) error {
			why, err := reason(why)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("for") && length <= 0 {
				return cli.Usage(errors.New("--for must be longer than nothing, such as 30m, 2h or 1d"))
			}
			value, until := "true", "until `kubectl drydock resume`"
			if length > 0 {
				end := p.now().Add(time.Duration(length))
				value = stamp(end)
				until = fmt.Sprintf("until %s, or `kubectl drydock resume`", stamp(end))
			}
			value = strings.TrimSpace(value + " " + why)
			return p.each(cmd.Context(), nodes, selector, func(c client, node string) error {
				return p.pause(cmd.Context(), c, node, value, until)
			})
		},
	}
	selects(cmd, &selector)
	cmd.Flags().Var(&length, "for", "for how long, such as 30m, 2h or 1d; without it, until somebody resumes the node")
	cmd.Flags().Lookup("for").DefValue = ""
	cmd.Flags().StringVar(&why, "why", "", "for whoever wonders later")
	return cmd
}

func (p *plugin) pause(ctx context.Context, c client, node, value, until string) error {
	n, err := p.write(ctx, c, node, "pausing "+node, word{remediations.PauseKey: value})
	if err != nil {
		return err
	}
	if r := remediations.InFlight(n); r != nil {
		p.say("%s is paused %s: the %s that repair %s has issued is still verified, and nothing new starts; `kubectl drydock status -w` follows it.", node, until, r.Step.Name, r.ID)
		return nil
	}
	p.say("%s is paused %s: Drydock starts nothing there; `kubectl drydock status` shows what is held by it.", node, until)
	return nil
}

func (p *plugin) newResumeCommand() *cobra.Command {
	var selector string
	cmd := &cobra.Command{
		Use:   "resume NODE... | -l SELECTOR",
		Short: "End a node's pause, and mend its broken glass",
		Long:  "Resume takes the pause and the broken glass off a node, so that Drydock goes on with it.",
		RunE: func(cmd *cobra.Command, nodes []string) error {
			return p.each(cmd.Context(), nodes, selector, func(c client, node string) error {
				return p.resume(cmd.Context(), c, node)
			})
		},
	}
	selects(cmd, &selector)
	return cmd
}

func (p *plugin) resume(ctx context.Context, c client, node string) error {
	doing := "resuming " + node
	n, err := c.Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return asking(err, doing, node)
	}
	var ended []string
	w := word{}
	for _, k := range []struct{ key, name string }{{remediations.PauseKey, "the pause"}, {remediations.BreakGlassKey, "the broken glass"}} {
		if _, ok := n.Annotations[k.key]; ok {
			w[k.key], ended = nil, append(ended, k.name)
		}
	}
	excluded := ""
	if remediations.Excluded(n) {
		excluded = fmt.Sprintf(", but the label %s=%s still keeps Drydock away", remediations.ExcludeLabel, n.Labels[remediations.ExcludeLabel])
	}
	if len(w) == 0 {
		p.say("%s was neither paused nor its glass broken%s; nothing was written.", node, excluded)
		return nil
	}
	if _, err := p.write(ctx, c, node, doing, w); err != nil {
		return err
	}
	p.say("%s: %s ended%s; what waited for that goes on by itself, as `kubectl drydock status -w` shows.", node, strings.Join(ended, " and "), excluded)
	return nil
}

// each does the same to several nodes: what is refused for one does not keep it from the others.
func (p *plugin) each(ctx context.Context, nodes []string, selector string, do func(c client, node string) error) error {
	switch {
	case len(nodes) == 0 && selector == "":
		return cli.Usagef("name at least one node, or select nodes with -l")
	case len(nodes) > 0 && selector != "":
		return cli.Usagef("nodes and -l were both given; give one of them")
	}
	c, err := p.connect()
	if err != nil {
		return err
	}
	if selector != "" {
		if nodes, err = selected(ctx, c, selector); err != nil {
			return err
		}
	}
	var refused refusals
	for _, node := range nodes {
		if err := do(c, node); err != nil {
			refused = append(refused, err)
		}
	}
	if len(refused) == 0 {
		return nil
	}
	return refused
}

func (p *plugin) newBreakGlassCommand() *cobra.Command {
	var why string
	cmd := &cobra.Command{
		Use:     "break-glass NODE --why TEXT",
		Short:   "Let people work on a node that is under repair",
		Long:    "Break-glass makes admission let everything through on the node, though it is under repair, and keeps Drydock from\ndoing anything new there. It ends with resume, or after an hour.",
		Example: "  kubectl drydock break-glass node-3 --why 'must drain now, ticket 4711'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			why, err := reason(why)
			if err != nil {
				return err
			}
			if why == "" {
				return cli.Usage(errors.New("--why is needed: it is what whoever wonders later will read"))
			}
			c, err := p.connect()
			if err != nil {
				return err
			}
			node := args[0]
			if _, err := p.write(cmd.Context(), c, node, "breaking the glass of "+node, word{remediations.BreakGlassKey: why}); err != nil {
				return err
			}
			p.say("The glass of %s is broken: admission lets everything through there but writes to Drydock's own keys, and Drydock issues nothing new, until `kubectl drydock resume %s` or for one hour.", node, node)
			return nil
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "for whoever wonders later (required)")
	return cmd
}
