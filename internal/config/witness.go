package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations"
	daemonsets "drydock.dev/drydock/remediations/providers/daemonsets/settings"
	"drydock.dev/drydock/remediations/signs"
)

const daemonSetsKey = "providers.daemonSets."

// witness reads the signs of a fault, beside the alert, that the node itself must show before a
// repair. It returns nil if the policy has none.
func (b *builder) witness(at pointer, raw any) *signs.Witness {
	switch raw := raw.(type) {
	case string:
		return &signs.Witness{None: true} // the schema allows no other text
	case []any:
		w := &signs.Witness{}
		for i, entry := range raw {
			sign, ok := b.sign(at.To(i), entry)
			if ok && slices.Contains(w.Signs, sign) {
				b.Fault(at.To(i), "is already in the list; remove it")
			}
			if ok {
				w.Signs = append(w.Signs, sign)
			}
		}
		return w
	}
	return nil
}

func (b *builder) sign(at pointer, raw any) (signs.Sign, bool) {
	entry, isMapping := raw.(map[string]any)
	if !isMapping || b.Faulty(at) {
		return signs.Sign{}, false
	}
	known := loadSchema().policies.at(pointer{}.To(0, "witness", 0)).names()
	var keys []string
	for _, key := range known {
		if b.Faulty(at.To(key)) {
			return signs.Sign{}, false
		}
		if _, has := entry[key]; has {
			keys = append(keys, key)
		}
	}
	switch len(keys) {
	case 0:
		if b.faultyUnder(at) {
			return signs.Sign{}, false
		}
		b.Fault(at, "is empty; write one of %s, for example {ready: false}", list(known))
		return signs.Sign{}, false
	case 1:
	default:
		b.Fault(at, "has the keys %s; write a separate entry for each (one of them is enough to show the fault)", list(keys))
		return signs.Sign{}, false
	}
	s := signs.Sign{Kind: signs.Kind(keys[0])}
	inner, _ := entry[keys[0]].(map[string]any)
	text := func(key string) string { v, _ := inner[key].(string); return v }
	p := at.To(keys[0])
	switch s.Kind {
	case signs.Condition:
		s.Name, s.Status = text("type"), text("status")
		if b.Faulty(p.To("type")) || b.Faulty(p.To("status")) {
			return s, false
		}
		if s.Name == "Ready" {
			b.Fault(p.To("type"), "cannot be Ready here; write {ready: false}, which also covers the status Unknown")
			return s, false
		}
		return b.condition(p, s, text)
	case signs.DaemonSetPod:
		namespace, name, from := text("namespace"), text("name"), text("from")
		for _, key := range []string{"namespace", "name", "from"} {
			if b.Faulty(p.To(key)) {
				return s, false
			}
		}
		switch {
		case from != "" && namespace+name != "":
			b.Fault(p.To("from"), "names the DaemonSet, but namespace and name do so, too; remove from, or namespace and name")
			return s, false
		case from != "":
			s.From = daemonSetsKey + from
		case namespace == "" || name == "":
			b.Fault(p, "names no DaemonSet; write namespace and name, or from")
			return s, false
		default:
			s.Name = namespace + "/" + name
		}
	case signs.NotReady, signs.StaleLease, signs.MissingGPUs, signs.NotRunning:
	}
	return s, true
}

// staleAfter is the default age of a heartbeat at which a condition no longer counts. The kubelet,
// node-problem-detector and the agents of EKS and AKS send a heartbeat at least every 5 minutes.
const staleAfter = time.Hour

func (b *builder) condition(at pointer, s signs.Sign, text func(key string) string) (signs.Sign, bool) {
	ok := true
	switch age := text("staleAfter"); age {
	case "":
		s.StaleAfter = staleAfter
	case "never":
	default:
		s.StaleAfter, ok = b.Duration(at.To("staleAfter"), age, time.Minute)
	}
	texts := signs.Texts{}
	for _, one := range []struct {
		key  string
		into **regexp.Regexp
	}{
		{"reason", &texts.Reason}, {"reasonNot", &texts.ReasonNot}, {"message", &texts.Message}, {"messageNot", &texts.MessageNot},
	} {
		key, expr := one.key, text(one.key)
		if b.Faulty(at.To(key)) {
			ok = false
		}
		if expr == "" {
			continue
		}
		re, err := regexp.Compile(expr)
		if err != nil {
			b.Fault(at.To(key), "is not a regular expression: %v", err)
			ok = false
			continue
		}
		*one.into = re
		s.Texts = &texts
	}
	return s, ok
}

func (b *builder) faultyUnder(at pointer) bool {
	for key := range b.at {
		if strings.HasPrefix(key, at.Key()+"/") {
			return true
		}
	}
	return false
}

// nameDaemonSets takes names from providers.daemonSets. In a shipped witness, it also replaces
// kube-system/kube-proxy and kube-system/cilium: the shipped alerts also count a DaemonSet with
// another name or namespace.
func (c *Config) nameDaemonSets() {
	own, ok := Of[*daemonsets.DaemonSets](c)
	if !ok {
		return
	}
	names := map[string]types.NamespacedName{daemonSetsKey + "cni": own.CNI, daemonSetsKey + "kubeProxy": own.KubeProxy}
	instead := map[string]types.NamespacedName{"kube-system/kube-proxy": own.KubeProxy}
	if strings.Contains(own.CNI.Name, "cilium") { // another configured CNI may be the one that Cilium is chained to
		instead["kube-system/cilium"] = own.CNI
	}
	for _, p := range c.Policies {
		if p.Witness == nil || p.Witness.None {
			continue
		}
		if own.CNI.Name != "" {
			p.Witness.Network = own.CNI.String()
		}
		for i, s := range p.Witness.Signs {
			if s.Kind == signs.NotReady || s.Kind == signs.Condition {
				p.Witness.Signs[i].Network = p.Witness.Network
			}
			n := names[s.From]
			if n.Name == "" && p.witnessAsShipped() {
				n = instead[s.Name]
			}
			if n.Name != "" {
				p.Witness.Signs[i].Name = n.Namespace + "/" + n.Name
			}
		}
	}
}

// witnessAsShipped reports whether the policy has the witness of the shipped policy. The
// configuration may change other keys.
func (p PolicyInfo) witnessAsShipped() bool {
	if p.From == shippedFrom {
		return true
	}
	own, _ := p.tree.(map[string]any)
	return p.shipped != nil && same(own["witness"], p.shipped["witness"])
}

// unwitnessed warns of a user's policy without a witness, which repairs nothing. It also warns of
// each sign that this installation cannot check.
func (c *Config) unwitnessed(p PolicyInfo) []Fault {
	if p.Mode == remediations.ModeOff || p.Kind != remediations.KindNode {
		return nil
	}
	if p.Witness == nil {
		return []Fault{p.source.locate(p.at, true, fmt.Sprintf("policy %s has no witness, so it repairs nothing (NotWitnessed): write what shows the fault on the node itself, for example witness: [{ready: false}], or write witness: none if the alert alone is enough", p.Name))}
	}
	var out []Fault
	for i, s := range p.Witness.Signs {
		if why := c.mute(s); why != "" {
			out = append(out, p.source.locate(p.at.To("witness", i), true, fmt.Sprintf("can never show a fault: %s", why)))
		}
	}
	return out
}

// mute returns why this installation cannot check the sign, or "".
func (c *Config) mute(s signs.Sign) string {
	switch {
	case s.Kind == signs.DaemonSetPod && s.Name == "":
		return s.From + " is not configured"
	case s.Kind == signs.NotRunning && !c.testifies():
		return "no provider is configured that reports whether a machine runs"
	}
	return ""
}

func (c *Config) shippedUnwitnessed() []string {
	held := map[string][]string{}
	var order []string
	for _, p := range c.Policies {
		if p.From != shippedFrom || p.Mode == remediations.ModeOff || p.Witness == nil {
			continue
		}
		for _, s := range p.Witness.Signs {
			if why := c.mute(s); why != "" {
				if held[why] == nil {
					order = append(order, why)
				}
				held[why] = append(held[why], p.Name)
			}
		}
	}
	var out []string
	for _, why := range order {
		out = append(out, fmt.Sprintf("shipped policies that repair nothing (NotWitnessed) because %s: %s", why, strings.Join(held[why], ", ")))
	}
	return out
}
