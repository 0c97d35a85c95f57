package config

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
)

// leastWell is the shortest allowed endWhenWell: a node that is healthy only for moments between
// two faults must not count as healthy.
const leastWell = time.Minute

func (b *builder) compilePolicies(list pointer, raw []rawPolicy, from string) []PolicyInfo {
	var out []PolicyInfo
	first := map[string]int{}
	for i := range raw {
		at, r := list.To(i), &raw[i]
		if other, twice := first[r.Name]; twice {
			b.Fault(at.To("name"), "%q is already the name of policies[%d]; write another", r.Name, other)
		} else if !b.Faulty(at.To("name")) {
			first[r.Name] = i
		}
		out = append(out, PolicyInfo{Policy: b.policy(at, r), From: from, source: b.document, at: at, tree: b.value(at)})
	}
	return out
}

func (b *builder) policy(at pointer, r *rawPolicy) *remediations.Policy {
	p := &remediations.Policy{
		Name:            r.Name,
		NodeSelector:    b.Selector(at.To("nodeSelector"), r.NodeSelector),
		Mode:            remediations.Mode(r.Mode),
		Approval:        r.Approval,
		RepairCordoned:  r.RepairCordoned,
		CordonExhausted: r.OnExhausted == "cordon",
	}
	p.For, _ = b.Duration(at.To("for"), r.For, 0)
	p.ProofFor, _ = b.Duration(at.To("proofFor"), r.ProofFor, 0)
	p.Cooldown, _ = b.Duration(at.To("cooldown"), r.Cooldown, 0)
	p.RelapseWindow, _ = b.Duration(at.To("relapseWindow"), r.RelapseWindow, 0)
	if r.EndWhenWell != "" {
		p.EndWhenWell, _ = b.Duration(at.To("endWhenWell"), r.EndWhenWell, leastWell)
	}
	clean := true
	for i, text := range r.Match {
		m := at.To("match", i)
		p.Match = append(p.Match, b.matchers(m, text)...)
		clean = clean && !b.Faulty(m)
	}
	if clean && len(p.Match) > 0 {
		b.needsValue(at.To("match"), p.Match)
	}
	p.Witness = b.witness(at.To("witness"), r.Witness)
	b.target(at, r, p)
	for i := range r.Plan {
		read := b.step
		if p.Kind == remediations.KindAPIServer && r.Plan[i].Step == "restart-kubelet" {
			read = b.rescueStep
		}
		step := read(at.To("plan", i), &r.Plan[i])
		p.Plan = append(p.Plan, step)
		if target := at.To("target"); !b.Faulty(target.To("location")) && !b.Faulty(target.To("pod")) && !b.Faulty(target.To("apiserver")) {
			b.stepOn(at.To("plan", i, "step"), p, step.Name)
		}
	}
	return p
}

func (b *builder) target(at pointer, r *rawPolicy, p *remediations.Policy) {
	t := r.Target
	var kinds []string
	for _, kind := range []struct {
		key string
		is  bool
	}{{"node", t.Node != ""}, {"pod", t.Pod != ""}, {"location", t.Location != ""}, {"apiserver", t.APIServer}} {
		if kind.is {
			kinds = append(kinds, kind.key)
		}
	}
	if len(kinds) > 1 {
		b.Fault(at.To("target", kinds[len(kinds)-1]), "the target is already a %s; a policy has one of node, pod, location and apiserver: remove the others", kinds[0])
	}
	if t.Namespace != "" && t.Pod == "" {
		b.Fault(at.To("target", "namespace"), "a %s has no namespace; remove it, or also write target.pod, the alert's label that names the pod", cmp.Or(strings.Join(kinds, " and "), "node"))
	}
	if r.EndWhenWell != "" && len(kinds) > 0 && kinds[len(kinds)-1] != "node" {
		b.Fault(at.To("endWhenWell"), "only a policy about nodes may have it, and this target is a %s; remove it", kinds[len(kinds)-1])
	}
	if r.Witness != nil && (t.APIServer || t.Location != "" || t.Pod != "") {
		b.Fault(at.To("witness"), "only a policy about nodes may have a witness, and this target is a %s; remove it", kinds[len(kinds)-1])
	}
	p.Labels = []string{cmp.Or(t.Node, "node")}
	switch {
	case t.APIServer:
		p.Kind, p.Labels, p.CordonExhausted = remediations.KindAPIServer, nil, false
		b.aboutAPIServers(at, r)
	case t.Location != "":
		p.Kind, p.Labels, p.CordonExhausted = remediations.KindLocation, []string{t.Location}, false
		b.aboutLeaders(at, r)
	case t.Pod != "":
		p.Kind, p.Labels = remediations.KindSidecar, []string{cmp.Or(t.Namespace, "namespace"), t.Pod}
		b.aboutPods(at, r)
	}
}

func (b *builder) stepOn(at pointer, p *remediations.Policy, name string) {
	if b.Faulty(at) {
		return
	}
	switch target := b.core.Remediation(name).Target; {
	case p.Kind == remediations.KindAPIServer && name != "restart-kubelet":
		b.Fault(at, "%s needs an API server, but this policy repairs API servers; write restart-kubelet", name)
	case target == remediations.KindSidecar && p.Kind != target:
		b.Fault(at, "%s repairs a pod's sidecar; write target: {pod: LABEL}, the alert's label that names the pod", name)
	case target == remediations.KindLocation && p.Kind != target:
		b.Fault(at, "%s repairs a location's leader; write target: {location: LABEL}, the alert's label that names the location", name)
	case p.Kind == remediations.KindSidecar && target != p.Kind:
		b.Fault(at, "%s repairs a node, but this policy is about a pod's sidecar; write mark-ready", name)
	case p.Kind == remediations.KindLocation && target != p.Kind:
		b.Fault(at, "%s repairs a node, but this policy is about a location's leader; write promote-leader", name)
	}
}

// aboutPods refuses keys that make no sense in a policy about sidecars. One is approval: a
// sidecar's repair has no record before its step begins.
func (b *builder) aboutPods(at pointer, r *rawPolicy) {
	if len(r.Plan) > 1 {
		b.Fault(at.To("plan", 1), "a policy about sidecars has only one step; remove this step, and write attempts to repeat the first one")
	}
	if r.Approval {
		b.Fault(at.To("approval"), "a repair of a sidecar is not recorded before it begins, so a person cannot approve it; remove it, or write mode: observe")
	}
	if r.NodeSelector != nil {
		b.Fault(at.To("nodeSelector"), "a policy about sidecars cannot select nodes; remove it, and select pods with the selector in providers.sidecars")
	}
}

// Selector returns nil if the selector selects every node or has a fault.
func (b *builder) Selector(at pointer, s *metav1.LabelSelector) k8slabels.Selector {
	if s == nil {
		return nil
	}
	for key, value := range s.MatchLabels {
		b.selects(at.To("matchLabels", key), &metav1.LabelSelector{MatchLabels: map[string]string{key: value}})
	}
	for i, e := range s.MatchExpressions {
		b.selects(at.To("matchExpressions", i), &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{e}})
	}
	selector, err := metav1.LabelSelectorAsSelector(s)
	if err != nil || selector.Empty() {
		return nil
	}
	return selector
}

func (b *builder) selects(at pointer, s *metav1.LabelSelector) {
	// If the key, the operator or the values already have a fault, a second fault by Kubernetes' error
	// could be misleading.
	if b.Faulty(at.To("key")) || b.Faulty(at.To("operator")) || b.Faulty(at.To("values")) {
		return
	}
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		// The message leaves out the end of Kubernetes' error: examples and a regular expression.
		problem, _, _ := strings.Cut(err.Error(), " (e.g. ")
		b.Fault(at, "is not a valid requirement of a label selector: %s", problem)
	}
}

func (b *builder) step(at pointer, r *rawStep) remediations.Step {
	s := remediations.Step{Name: r.Step, Attempts: 1, ContinueOnTimeout: r.OnTimeout == "continue"}
	known, ok := b.core.Registry.Of(r.Step)
	if !ok {
		names := b.core.Registry.Names()
		hint := "the known remediations are " + list(names)
		if near := text.Nearest(r.Step, names); near != "" {
			hint += "; did you mean \"" + near + "\"?"
		}
		b.Fault(at.To("step"), "there is no remediation %s; %s", show(r.Step), hint)
		return s
	}
	if s.Soft = r.Soft; known.Name != "reboot" {
		b.onlyFor(at, known.Name, "soft")
	}
	if known.Name != "drain" {
		b.onlyFor(at, known.Name, "withoutController")
	} else if r.WithoutController != "refuse" {
		s.WithoutController = remediations.WithoutController(r.WithoutController)
	}
	if s.ContinueUnreachable = r.OnUnreachable == "continue"; !known.LooksFirst {
		b.onlyFor(at, known.Name, "onUnreachable")
	}
	if s.Provider = r.Provider; known.Target != remediations.KindSidecar {
		b.onlyFor(at, known.Name, "provider")
	}
	b.names(at, r, &s)
	if known.Once {
		b.onlyFor(at, known.Name, "timeout", "onTimeout")
		if r.Wait == "" {
			b.Fault(at.To("wait"), "missing; step %s has no default, write for example 10m", known.Name)
		}
		least := time.Second
		if known.Target == remediations.KindSidecar {
			least = 30 * time.Second // the shortest time between two attempts
		}
		s.Wait, _ = b.Duration(at.To("wait"), r.Wait, least)
		if r.Attempts != nil {
			s.Attempts = *r.Attempts
		}
		if s.Soft && s.Attempts < 2 {
			b.Fault(at.To("soft"), "makes the only attempt a soft one, so that none cuts the power; write attempts: 2 or more")
		}
		return s
	}
	b.onlyFor(at, known.Name, "wait", "attempts")
	if r.Timeout == "" {
		b.Fault(at.To("timeout"), "missing; step %s has no default, write for example 30m", known.Name)
	}
	s.Timeout, _ = b.Duration(at.To("timeout"), r.Timeout, time.Second)
	return s
}

func (b *builder) onlyFor(at pointer, name string, senseless ...string) {
	step, _ := b.value(at).(map[string]any)
	instead := "this step has timeout and onTimeout instead"
	if slices.Contains(senseless, "timeout") {
		instead = "this step has wait and attempts instead"
	}
	if slices.Contains(senseless, "soft") {
		instead = "only a reboot can be soft"
	}
	if slices.Contains(senseless, "onUnreachable") {
		instead = "Drydock does not ask a provider before this step"
	}
	if slices.Contains(senseless, "withoutController") {
		instead = "only a drain evicts pods"
	}
	if slices.Contains(senseless, "provider") {
		instead = "only a step of sidecars names a provider"
	}
	if slices.Contains(senseless, "unit") {
		instead = "only restart-unit names a unit"
	}
	if slices.Contains(senseless, "daemonSet") {
		instead = "only rollout-restart names a DaemonSet"
	}
	if slices.Contains(senseless, "template") {
		instead = "only external and external-replace name a template"
	}
	for _, key := range senseless {
		if _, present := step[key]; present {
			b.Fault(at.To(key), "makes no sense on step %s: %s; remove it", name, instead)
		}
	}
}
