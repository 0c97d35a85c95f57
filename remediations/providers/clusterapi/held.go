package clusterapi

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"drydock.dev/drydock/remediations/providers/kit"
	"drydock.dev/drydock/remediations/providers/kubeapi"
)

func (c *Client) held(s *sight) error {
	var all kit.Holds
	c.clusterHolds(s, &all)
	c.repairHolds(s.machine, &all)
	c.machineHolds(s, &all)
	c.ownerHolds(s, &all)
	c.checkHolds(s, &all)
	return all.Err()
}

func (c *Client) clusterHolds(s *sight, all *kit.Holds) {
	k := &s.cluster
	all.If(k.DeletionTimestamp != nil, kit.Setup, "%s is being deleted", kubeapi.Name(k))
	all.If(k.Spec.Paused || k.has(pausedKey), kit.Setup, "%s is paused; Cluster API does nothing until a person unpauses it", kubeapi.Name(k))
	p := k.Status.Get("RemoteConnectionProbe")
	all.If(p != nil && p.Status != metav1.ConditionTrue, kit.Passing, "Cluster API has lost its connection to the Nodes of %s, so its data about them may be old: %s", kubeapi.Name(k), c.condition(p))
}

func (c *Client) machineHolds(s *sight, all *kit.Holds) {
	m := s.machine
	all.If(m.has(pausedKey), kit.Machine, "%s is paused (annotation %s); remove the annotation", kubeapi.Name(m), pausedKey)
	all.If(m.has(skipKey) && !m.kept(), kit.Machine, "%s must not be replaced (annotation %s); remove the annotation", kubeapi.Name(m), skipKey)
	n := m.Status.Get(nodeHealthy)
	all.If(n != nil && n.Reason == "InternalError", kit.Machine, "Cluster API cannot distinguish %s from the Machine of another Node: %s", kubeapi.Name(m), c.condition(n))
	for _, key := range slices.Sorted(maps.Keys(m.Annotations)) {
		hook := strings.HasPrefix(key, preDrainHook) || strings.HasPrefix(key, preTerminate)
		all.If(hook, kit.Machine, "%s has a hook that would block its deletion (annotation %s)", kubeapi.Name(m), c.Quote(key))
	}
}

func (c *Client) repairHolds(m *machine, all *kit.Holds) {
	all.If(m.DeletionTimestamp != nil, kit.While, "%s is already being deleted: %s", kubeapi.Name(m), c.condition(m.Status.Get(deleting)))
	all.If(m.has(remediateKey), kit.Machine, "a replacement of %s is already requested (annotation %s, value %s); wait for it, or remove the annotation", kubeapi.Name(m), remediateKey, c.Quote(m.Annotations[remediateKey]))
	update := c.InPlaceUpdate(m.Annotations, m.Status.Conditions)
	all.If(update != "", kit.While, "%s %s", kubeapi.Name(m), update)
	all.If(m.Status.False(healthy), kit.While, "%s is already marked as unhealthy: %s", kubeapi.Name(m), c.condition(m.Status.Get(healthy)))
	all.If(m.Status.False(ownerRemedied), kit.While, "%s is already being replaced: %s", kubeapi.Name(m), c.condition(m.Status.Get(ownerRemedied)))
	external := m.Status.False(elseRemedied) && !m.Status.True(healthy) // the condition stays after the external remediation has ended
	all.If(external, kit.While, "%s is being repaired by an external remediation: %s", kubeapi.Name(m), c.condition(m.Status.Get(elseRemedied)))
}

func (c *Client) ownerHolds(s *sight, all *kit.Holds) {
	name, wanted := kubeapi.Name(&s.set), s.set.Wanted()
	all.If(s.set.DeletionTimestamp != nil, kit.Machine, "%s is being deleted, so it would make no new Machine", name)
	all.If(metav1.HasAnnotation(s.set.ObjectMeta, pausedKey), kit.Machine, "%s is paused (annotation %s)", name, pausedKey)
	all.If(metav1.HasAnnotation(s.set.ObjectMeta, noMachineKey), kit.Machine, "%s makes no new Machines (annotation %s)", name, noMachineKey)
	all.If(len(s.owned) > wanted, kit.While, "%s should have %d Machines and has %d, so it would make no new one", name, wanted, len(s.owned))
	d := s.deployment
	if d == nil {
		return
	}
	all.If(d.Spec.Paused || d.has(pausedKey), kit.Machine, "%s is paused", kubeapi.Name(d))
	all.If(d.Annotations[revisionKey] != s.set.Annotations[revisionKey], kit.While, "%s is an old revision of %s, whose rollout replaces its Machines", name, kubeapi.Name(d))
	inFlightHolds(s, all)
}

// Cluster API counts only Machines that their MachineSet deletes for spec.remediation.maxInFlight.
// Drydock also counts Machines whose replacement is requested, and Machines that another client
// deletes.
func inFlightHolds(s *sight, all *kit.Holds) {
	d := s.deployment
	limit := d.Spec.Remediation.MaxInFlight
	if limit == nil {
		return
	}
	most, err := intstr.GetScaledValueFromIntOrPercent(limit, ptr.Deref(d.Spec.Replicas, 1), true)
	var names []string
	for i := range s.owned {
		one := &s.owned[i]
		if one.UID != s.machine.UID && (one.DeletionTimestamp != nil || one.Status.False(ownerRemedied)) {
			names = append(names, one.Namespace+"/"+one.Name)
		}
	}
	switch {
	case err != nil:
		all.If(true, kit.Machine, "spec.remediation.maxInFlight of %s is neither a number nor a percentage", kubeapi.Name(d))
	case most <= 0:
		all.If(true, kit.Machine, "%s allows no remediation (spec.remediation.maxInFlight is %s)", kubeapi.Name(d), limit)
	case len(names) >= most:
		all.If(true, kit.While, "%s allows %d remediations at a time (spec.remediation.maxInFlight), and Machine %s is being replaced", kubeapi.Name(d), most, names[0])
	}
}

func (c *Client) checkHolds(s *sight, all *kit.Holds) {
	if len(s.checks) > 1 {
		all.If(true, kit.Machine, "%s and %s both select %s, and Cluster API does not define the result; change one of them", kubeapi.Name(&s.checks[0]), kubeapi.Name(&s.checks[1]), kubeapi.Name(s.machine))
	}
	for i := range s.checks {
		check := &s.checks[i]
		t := check.Spec.Remediation.TemplateRef
		all.If(t.Kind != "" || t.Name != "", kit.Machine, "%s has the remediation template %s, so it would repair the machine by that, perhaps by a reboot, instead of replacing it", kubeapi.Name(check), c.Quote(t.Kind+" "+t.Name))
		all.If(check.has(pausedKey), kit.Machine, "%s is paused (annotation %s)", kubeapi.Name(check), pausedKey)
		all.If(check.DeletionTimestamp != nil, kit.While, "%s is being deleted", kubeapi.Name(check))
		forbids := check.Status.False(allowed)
		all.If(forbids, kit.While, "%s allows no remediation now: %s", kubeapi.Name(check), c.condition(check.Status.Get(allowed)))
		left := check.Status.RemediationsAllowed
		all.If(!forbids && left != nil && *left == 0, kit.While, "%s allows no further remediation now (status.remediationsAllowed is 0)", kubeapi.Name(check))
	}
}

func (c *Client) condition(of *metav1.Condition) string { return c.Says("Cluster API", of) }
