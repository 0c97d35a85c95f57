package main

import (
	"context"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/fence"
	fencesettings "drydock.dev/drydock/remediations/providers/fence/settings"
	"drydock.dev/drydock/remediations/signs"
)

const askAtOnce = 10

// fenceStates only reads power states. against has one sentence for each machine without an answer,
// and for each line of a machinesFile that names no Node.
func fenceStates(ctx context.Context, cfg *config.Config, nodes []*corev1.Node) (said, against []string) {
	c, ok := config.Of[*fencesettings.Fence](cfg)
	if !ok {
		return nil, nil
	}
	client, err := fence.New(*c, func(context.Context) ([]*corev1.Node, error) { return nodes, nil })
	if err != nil {
		return nil, []string{fmt.Sprintf("the power state of the machines in providers.fence could not be read: %v", err)}
	}
	answers := make([]signs.Testimony, len(nodes))
	var asking errgroup.Group
	asking.SetLimit(askAtOnce)
	for i, n := range nodes {
		if !fences(cfg, n) {
			continue
		}
		asking.Go(func() error {
			answers[i] = fence.NewRebooter(client).Testify(ctx, engine.MachineOf(n), signs.Sign{Kind: signs.NotRunning})
			return nil
		})
	}
	_ = asking.Wait() // each answer has its own error
	for i, n := range nodes {
		switch line := fmt.Sprintf("Node %s: %s", n.Name, answers[i].Saw); answers[i].Answer {
		case signs.Well, signs.Ill:
			said = append(said, line)
		default:
			if answers[i].Saw != "" {
				against = append(against, line)
			}
		}
	}
	for _, a := range c.Agents {
		against = append(against, withoutNode(a, nodes)...)
	}
	return said, against
}

func fences(cfg *config.Config, n *corev1.Node) bool {
	for step := range fencesettings.Section.Steps {
		if name, _ := cfg.Core.ProviderOf(step, n); name == fencesettings.Section.Key {
			return true
		}
	}
	return false
}

// withoutNode finds lines of the machinesFile that fit no Node. Their names may be misspelt.
func withoutNode(a fencesettings.Agent, nodes []*corev1.Node) (against []string) {
	if a.MachinesFile == "" {
		return nil
	}
	table, err := os.ReadFile(a.MachinesFile) // fence.New has checked its size
	if err != nil {
		return []string{fmt.Sprintf("the lines of machinesFile were not compared with the Nodes: %v", err)}
	}
	rows, err := fencesettings.ReadTable(table, &a)
	if err != nil {
		return []string{fmt.Sprintf("the lines were not compared with the Nodes: %v", err)} // the error names the file
	}
	for i, one := range rows {
		named := func(n *corev1.Node) bool {
			uuid, _ := section.ParseUUID(n.Status.NodeInfo.SystemUUID) // without a UUID, the name must match
			byName, byUUID := one.Is(n.Name, uuid)
			return byName || byUUID
		}
		if !slices.ContainsFunc(nodes, named) {
			against = append(against, fmt.Sprintf("machinesFile %s, machine %d (%s): the cluster has no such Node, so its power state was not read; correct the line, or remove it", a.MachinesFile, i+1, one))
		}
	}
	return against
}
