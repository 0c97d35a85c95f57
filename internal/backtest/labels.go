package backtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/backtest/history"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/marks"
	"drydock.dev/drydock/remediations/signs"
)

// Asks sets in past which labels, taints and conditions of Nodes must be read: those that the
// configurations use.
func Asks(configs []Named, past *history.Options) {
	labels := map[string]bool{signs.GPUCountLabel: true, remediations.ExcludeLabel: true}
	taints := map[string]bool{}
	past.NodeConditions = map[string]bool{}
	for _, c := range configs {
		core := c.Config
		names := slices.Concat(core.Limits.PoolLabels, []string{core.Limits.ZoneLabel, core.TopologyLabel}, core.HoldWhen.Keys(marks.Label))
		for _, p := range core.Policies {
			names = append(names, selectsBy(p.NodeSelector)...)
		}
		for _, p := range core.Providers {
			names = append(names, selectsBy(p.NodeSelector)...)
		}
		for _, name := range names {
			labels[name] = true
		}
		for _, key := range core.HoldWhen.Keys(marks.Taint) {
			taints[key] = true
		}
		for _, kind := range core.HoldWhen.Keys(marks.Condition) {
			past.NodeConditions[kind] = false
		}
		for kind, ill := range illWhen(core) {
			past.NodeConditions[string(kind)] = ill == corev1.ConditionFalse
		}
	}
	delete(labels, "") // from a configuration without a label for zones or locations
	past.NodeLabels, past.NodeTaints = slices.Sorted(maps.Keys(labels)), slices.Sorted(maps.Keys(taints))
}

func selectsBy(s k8slabels.Selector) (out []string) {
	if s == nil {
		return nil
	}
	requirements, _ := s.Requirements()
	for _, r := range requirements {
		out = append(out, r.Key())
	}
	return out
}

type shownLabels map[string]bool

func (l shownLabels) of(nodes []*corev1.Node) {
	for _, n := range nodes {
		for name := range n.Labels {
			l[name] = true
		}
	}
}

func (l shownLabels) missing(c *remediations.Config) (out []string) {
	by := map[string][]string{}
	for _, p := range c.Policies {
		if p.Mode == remediations.ModeOff || !c.Serves(p) {
			continue
		}
		for _, name := range slices.Compact(slices.Sorted(slices.Values(selectsBy(p.NodeSelector)))) {
			if !l[name] {
				by[name] = append(by[name], p.Name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, fmt.Sprintf("No Node in the record has the label %s, which the node selectors of these policies use: %s. kube-state-metrics shows only the labels in its --metric-labels-allowlist.",
			name, strings.Join(by[name], ", ")))
	}
	return out
}
