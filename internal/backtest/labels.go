package backtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/marks"
	"drydock.dev/drydock/remediations/signs"
)

// NodeLabels are the names of all labels of Nodes that the configurations use, sorted. kube-state-metrics changes names in a way that can
// be undone only for names that are known.
func NodeLabels(configs []Named) []string {
	out := map[string]bool{signs.GPUCountLabel: true}
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
			out[name] = true
		}
	}
	delete(out, "") // there is no zone or location
	return slices.Sorted(maps.Keys(out))
}

// selectsBy are the names of the labels that the selector asks for.
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

// shownLabels are the labels that at least one Node of the past has.
type shownLabels map[string]bool

func (l shownLabels) of(nodes []*corev1.Node) {
	for _, n := range nodes {
		for name := range n.Labels {
			l[name] = true
		}
	}
}

// missing names the labels by which the policies select Nodes, and which no Node of the past has.
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
		out = append(out, fmt.Sprintf("No Node in the record has the label %s, by which these policies select Nodes: %s. kube-state-metrics shows only the labels that its --metric-labels-allowlist names.",
			name, strings.Join(by[name], ", ")))
	}
	return out
}
