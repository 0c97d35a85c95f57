package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/signs"
)

// errPreview stops a provider in a preview: mayStill, called right before a call is sent, returns
// it.
var errPreview = errors.New("drydock check sends nothing")

// previewed are the steps whose first call `drydock check` can print without sending it. The
// provider passes the text to kit.Previewing's function, then calls mayStill, which returns
// errPreview.
var previewed = []string{"reboot", "sysrq", "powerOff", "replace", "external", "external-replace", "restart-unit", "restart-kubelet", "restart-containerd"}

// saidOfMachine changes nothing. sound is true if at least one step was checked and the provider
// would carry out every checked step.
func saidOfMachine(ctx context.Context, stderr io.Writer, cfg *config.Config, kubeconfig, name, node string) (lines []string, sound bool, err error) {
	c, client, err := clusterOf(stderr, kubeconfig)
	if err != nil {
		return nil, false, err
	}
	nodes, err := nodesOf(ctx, client)
	if err != nil {
		return nil, false, err
	}
	at := slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == node })
	if at < 0 {
		return nil, false, cli.Usagef("the cluster has no Node %q; `kubectl get nodes` lists them", node)
	}
	p := &program{cfg: cfg, providers: providers, rest: c, reg: prometheus.NewRegistry(), log: logr.Discard()}
	p.nodes = func(context.Context) ([]*corev1.Node, error) { return nodes, nil }
	if err := p.makeClients(); err != nil {
		return nil, false, err
	}
	all, timeout, err := p.newActuators(func(string, string, remediations.CallOutcome, error) {})
	if err != nil {
		return nil, false, err
	}
	steps := all[name]
	if len(steps) == 0 {
		return nil, false, cli.Usagef("the configuration has no provider %q that acts on nodes; it has %s", name, cmp.Or(strings.Join(configuredProviders(all), ", "), "none"))
	}
	sound = true
	var asked bool
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		if !slices.ContainsFunc(cfg.Core.Providers, func(p remediations.Provider) bool { return p.Name == name && slices.Contains(p.Steps, step) }) {
			continue // not configured
		}
		says, ok := []string{"not checked: no plan for this Node has the step, and the call depends on the plan"}, true
		if cfg.Core.Requested(remediations.RequestRemediation+step, nodes[at]) != nil {
			says, ok = askedFor(ctx, cfg, steps[step], nodes[at], name, step, timeout)
			asked = true
		}
		for _, line := range says {
			lines = append(lines, fmt.Sprintf("providers.%s, %s of Node %s: %s", name, step, node, line))
		}
		sound = sound && ok
	}
	return lines, sound && asked, nil
}

func configuredProviders(all map[string]map[string]engine.Actuator) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if len(all[name]) > 0 {
			names = append(names, name)
		}
	}
	return names
}

func askedFor(ctx context.Context, cfg *config.Config, a engine.Actuator, n *corev1.Node, provider, step string, timeout time.Duration) (says []string, ok bool) {
	bounded := func() (context.Context, context.CancelFunc) { return context.WithTimeout(ctx, timeout) }
	if serves, _ := cfg.Core.ProviderOf(step, n); serves != provider {
		says = append(says, "warning: a repair would not use this provider; without --provider, check says which one serves which Node")
	}
	m := engine.MachineOf(n)
	m.Attempt, m.Policy, m.Deadline = "check-1-1", "check", time.Now()
	soft := false
	for _, policy := range cfg.Core.Policies {
		i := slices.IndexFunc(policy.Plan, func(s remediations.Step) bool { return s.Name == step })
		if i >= 0 && policy.Mode != remediations.ModeOff && policy.Takes(n) {
			s := policy.Plan[i]
			m.Policy, m.Deadline, m.Unit, m.DaemonSet, m.Template, soft = policy.Name, m.Deadline.Add(s.Wait), s.Unit, s.DaemonSet, s.Template, s.Soft
			break
		}
	}
	ok = true
	if surveyor, asks := a.(engine.Surveyor); !asks {
		says = append(says, "this provider cannot be asked before a repair")
	} else {
		ctx, cancel := bounded()
		defer cancel()
		question := m
		question.Attempt, question.Policy, question.Deadline = "", "", time.Time{}
		answer := surveyor.Survey(ctx, question)
		if answer.Trouble != "" {
			return append(says, "the provider would refuse: "+answer.Trouble), false
		}
		says, m.Before = append(says, "the provider answers, knows this machine and would not refuse"), answer.Before
	}
	if w, testifies := a.(engine.Witness); testifies {
		ctx, cancel := bounded()
		defer cancel()
		if saw := w.Testify(ctx, m, signs.Sign{}).Saw; saw != "" {
			says = append(says, "state of the machine: "+saw)
		}
	}
	if !slices.Contains(previewed, step) {
		return says, ok
	}
	first := func(soft bool) (would string, err error) {
		ctx, cancel := bounded()
		defer cancel()
		m.Soft = soft
		_, err = a.Act(kit.Previewing(ctx, func(what string) { would = what }), m, func() error { return errPreview })
		return text.Line(would, maxPreview), err
	}
	would, err := first(soft)
	if soft && errors.Is(err, engine.ErrUnable) {
		says = append(says, "the first attempt is soft, and would be skipped: "+text.Line(err.Error(), maxPreview))
		would, err = first(false)
	}
	switch {
	case would != "":
		says = append(says, "the first call would send (nothing was sent): "+would)
	case err != nil && !errors.Is(err, errPreview):
		says, ok = append(says, "the first call would fail before it is sent: "+text.Line(err.Error(), maxPreview)), false
	}
	return says, ok
}

const maxPreview = 4 << 10
