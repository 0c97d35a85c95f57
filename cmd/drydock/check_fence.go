package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/fence"
	fencesettings "drydock.dev/drydock/remediations/providers/fence/settings"
	"drydock.dev/drydock/remediations/signs"
)

// askAtOnce is how many fence agents run at once.
const askAtOnce = 10

// fenceStates asks the fence agents for the power of the machines that providers.fence reboots. It
// changes nothing. said has one sentence for each machine, and against those that gave no answer.
func fenceStates(ctx context.Context, cfg *config.Config, nodes []*corev1.Node) (said, against []string) {
	c, ok := config.Of[*fencesettings.Fence](cfg)
	if !ok {
		return nil, nil
	}
	client, err := fence.New(*c, func(context.Context) ([]*corev1.Node, error) { return nodes, nil })
	if err != nil {
		return nil, []string{fmt.Sprintf("the machines of providers.fence were not asked: %v", err)}
	}
	answers := make([]signs.Testimony, len(nodes))
	var asking errgroup.Group
	asking.SetLimit(askAtOnce)
	for i, n := range nodes {
		if name, _ := cfg.Core.ProviderOf("reboot", n); name != "fence" {
			continue
		}
		asking.Go(func() error {
			answers[i] = fence.Rebooter{Client: client}.Testify(ctx, engine.MachineOf(n), signs.Sign{Kind: signs.NotRunning})
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
	return said, against
}
