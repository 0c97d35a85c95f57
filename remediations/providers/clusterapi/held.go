package clusterapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/remediations/providers/kit"
)

// hold is why Cluster API would not replace the Machine, or what else forbids it.
type hold struct {
	why  kit.Concern
	text string
}

// stays are the concerns of holds: the later ones stay longer, or concern more machines.
var stays = []kit.Concern{kit.While, kit.Passing, kit.Machine, kit.Setup}

// held names all holds at once; nil: there are none.
func (c *Client) held(s *sight) error {
	holds := slices.Concat(c.clusterHolds(s), c.repairHolds(s.machine), c.machineHolds(s), c.ownerHolds(s), c.checkHolds(s))
	if len(holds) == 0 {
		return nil
	}
	e := &kit.Refusal{Why: kit.While}
	var all []string
	for _, h := range holds {
		all = append(all, h.text)
		if slices.Index(stays, h.why) > slices.Index(stays, e.Why) {
			e.Why = h.why
		}
	}
	e.Text = strings.Join(all, "; ")
	return e
}

func (c *Client) clusterHolds(s *sight) (out []hold) {
	k := &s.cluster
	if k.DeletionTimestamp != nil {
		out = append(out, hold{kit.Setup, k.name() + " is being deleted"})
	}
	if k.Spec.Paused || k.has(pausedKey) {
		out = append(out, hold{kit.Setup, k.name() + " is paused; Cluster API does nothing until a person unpauses it"})
	}
	if p := k.Status.get("RemoteConnectionProbe"); p != nil && p.Status != metav1.ConditionTrue {
		out = append(out, hold{kit.Passing, fmt.Sprintf("Cluster API has lost its connection to the Nodes of %s, so what it knows of them is old: %s", k.name(), c.condition(p))})
	}
	return out
}

func (c *Client) machineHolds(s *sight) (out []hold) {
	m := s.machine
	add := func(why kit.Concern, format string, args ...any) {
		out = append(out, hold{why, m.name() + " " + fmt.Sprintf(format, args...)})
	}
	if m.has(pausedKey) {
		add(kit.Machine, "is paused (annotation %s); take the annotation away", pausedKey)
	}
	if m.has(skipKey) && !m.kept() {
		add(kit.Machine, "must not be replaced (annotation %s); take the annotation away", skipKey)
	}
	if n := m.Status.get(nodeHealthy); n != nil && n.Reason == "InternalError" {
		add(kit.Machine, "cannot be distinguished from another Node's, Cluster API reports: %s", c.condition(n))
	}
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		if strings.HasPrefix(key, preDrainHook) || strings.HasPrefix(key, preTerminate) {
			add(kit.Machine, "has a hook that would hold its deletion (annotation %s)", c.Quote(key))
		}
	}
	return out
}

// repairHolds: Cluster API is at work on the Machine, or was asked to be.
func (c *Client) repairHolds(m *machine) (out []hold) {
	add := func(format string, args ...any) {
		out = append(out, hold{kit.While, m.name() + " " + fmt.Sprintf(format, args...)})
	}
	if m.DeletionTimestamp != nil {
		add("is being deleted already: %s", c.condition(m.Status.get(deleting)))
	}
	if value, there := m.Annotations[remediateKey]; there {
		out = append(out, hold{kit.Machine, m.name() + fmt.Sprintf(" carries the request of a replacement already (annotation %s, value %s); wait for it, or take the annotation away", remediateKey, c.Quote(value))})
	}
	if update := c.InPlaceUpdate(m.Annotations, m.Status.Conditions); update != "" {
		add("%s", update)
	}
	if m.Status.isFalse(healthy) {
		add("is marked as unhealthy already: %s", c.condition(m.Status.get(healthy)))
	}
	if m.Status.isFalse(ownerRemedied) {
		add("is to be replaced already: %s", c.condition(m.Status.get(ownerRemedied)))
	}
	if m.Status.isFalse(elseRemedied) && !meta.IsStatusConditionTrue(m.Status.Conditions, healthy) {
		add("is being repaired by an external remediation: %s", c.condition(m.Status.get(elseRemedied))) // the condition stays after its end
	}
	return out
}

func (c *Client) ownerHolds(s *sight) (out []hold) {
	if s.set.DeletionTimestamp != nil {
		out = append(out, hold{kit.Machine, s.set.name() + " is being deleted, and would make no new Machine"})
	}
	if metav1.HasAnnotation(s.set.ObjectMeta, pausedKey) {
		out = append(out, hold{kit.Machine, fmt.Sprintf("%s is paused (annotation %s)", s.set.name(), pausedKey)})
	}
	if metav1.HasAnnotation(s.set.ObjectMeta, noMachineKey) {
		out = append(out, hold{kit.Machine, fmt.Sprintf("%s makes no new Machines (annotation %s)", s.set.name(), noMachineKey)})
	}
	if len(s.owned) > s.set.Wanted() {
		out = append(out, hold{kit.While, fmt.Sprintf("%s is to have %d Machines and has %d, so it would make no new one", s.set.name(), s.set.Wanted(), len(s.owned))})
	}
	d := s.deployment
	if d == nil {
		return out
	}
	if d.Spec.Paused || d.has(pausedKey) {
		out = append(out, hold{kit.Machine, d.name() + " is paused"})
	}
	if d.Annotations[revisionKey] != s.set.Annotations[revisionKey] {
		out = append(out, hold{kit.While, fmt.Sprintf("%s is an old revision of %s, which replaces its Machines by the rollout", s.set.name(), d.name())})
	}
	return append(out, inFlightHolds(s)...)
}

// inFlightHolds: the MachineDeployment limits how many Machines are replaced at the same time.
// Cluster API counts only those that its MachineSet deletes. Drydock also counts those whose
// replacement is requested, and those that others delete.
func inFlightHolds(s *sight) []hold {
	d := s.deployment
	limit := d.Spec.Remediation.MaxInFlight
	if limit == nil {
		return nil
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(limit, ptr.Deref(d.Spec.Replicas, 1), true)
	switch {
	case err != nil:
		return []hold{{kit.Machine, fmt.Sprintf("%s has a spec.remediation.maxInFlight that is neither a number nor a percentage", d.name())}}
	case most <= 0:
		return []hold{{kit.Machine, fmt.Sprintf("%s allows no remediation (spec.remediation.maxInFlight is %s)", d.name(), limit)}}
	}
	var names []string
	for i := range s.owned {
		one := &s.owned[i]
		if one.UID != s.machine.UID && (one.DeletionTimestamp != nil || one.Status.isFalse(ownerRemedied)) {
			names = append(names, one.Namespace+"/"+one.Name)
		}
	}
	if len(names) < most {
		return nil
	}
	return []hold{{kit.While, fmt.Sprintf("%s allows %d remediations at a time (spec.remediation.maxInFlight), and Machine %s is being replaced", d.name(), most, names[0])}}
}

func (c *Client) checkHolds(s *sight) (out []hold) {
	if len(s.checks) > 1 {
		out = append(out, hold{kit.Machine, fmt.Sprintf("%s and %s both select %s, and Cluster API has no rule for that; leave one", s.checks[0].name(), s.checks[1].name(), s.machine.name())})
	}
	for i := range s.checks {
		check := &s.checks[i]
		if t := check.Spec.Remediation.TemplateRef; t.Kind != "" || t.Name != "" {
			out = append(out, hold{kit.Machine, fmt.Sprintf("%s has the remediation template %s: it would have that repair the machine, perhaps by a reboot, and not replace it", check.name(), c.Quote(t.Kind+" "+t.Name))})
		}
		if check.has(pausedKey) {
			out = append(out, hold{kit.Machine, fmt.Sprintf("%s is paused (annotation %s)", check.name(), pausedKey)})
		}
		if check.DeletionTimestamp != nil {
			out = append(out, hold{kit.While, check.name() + " is being deleted"})
		}
		if check.Status.isFalse(allowed) {
			out = append(out, hold{kit.While, fmt.Sprintf("%s allows no remediation now: %s", check.name(), c.condition(check.Status.get(allowed)))})
		} else if left := check.Status.RemediationsAllowed; left != nil && *left == 0 {
			out = append(out, hold{kit.While, fmt.Sprintf("%s allows no further remediation (status.remediationsAllowed is 0): one more unhealthy Machine would stop all its remediations", check.name())})
		}
	}
	return out
}

// condition describes a condition.
func (c *Client) condition(of *metav1.Condition) string {
	if of == nil {
		return "Cluster API says nothing of it yet"
	}
	said := fmt.Sprintf("%s is %s, %s", of.Type, of.Status, of.Reason)
	if of.Message != "" {
		said += ", " + c.Quote(of.Message)
	}
	return said
}
