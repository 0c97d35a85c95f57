package config

import (
	"slices"
	"time"

	"drydock.dev/drydock/remediations"
	daemonsets "drydock.dev/drydock/remediations/providers/daemonsets/settings"
	hosts "drydock.dev/drydock/remediations/providers/hosts/settings"
	"drydock.dev/drydock/remediations/rescue/apiserver"
)

const (
	// leastRescueWait is for one host. A useful wait is longer, because an API server needs most of a
	// minute to start.
	leastRescueWait = 10 * time.Second
	// maxRescue is for all hosts together.
	maxRescue = time.Hour
)

func (b *builder) names(at pointer, r *rawStep, s *remediations.Step) {
	s.Unit, s.DaemonSet = r.Unit, r.DaemonSet
	if r.Step != "restart-unit" {
		b.onlyFor(at, r.Step, "unit")
	} else if p := at.To("unit"); !b.Faulty(p) {
		h, configured := Of[*hosts.Hosts](&b.config)
		switch {
		case r.Unit == "":
			b.Fault(p, "missing; write one of providers.hosts.units")
		case configured && !b.Faulty(pointer{"providers", "hosts", "units"}) && !slices.Contains(h.Units, r.Unit):
			b.Fault(p, "%q is not in providers.hosts.units; add it there, or write one that is", r.Unit)
		}
	}
	if r.Step != "rollout-restart" {
		b.onlyFor(at, r.Step, "daemonSet")
	} else if p := at.To("daemonSet"); !b.Faulty(p) {
		c, configured := Of[*daemonsets.ClusterWide](&b.config)
		switch {
		case r.DaemonSet == "":
			b.Fault(p, "missing; write one of providers.clusterWide.rolloutRestart")
		case configured && !b.Faulty(pointer{"providers", "clusterWide", "rolloutRestart"}) && !c.Rolls(r.DaemonSet):
			b.Fault(p, "%q is not in providers.clusterWide.rolloutRestart; add it there, or write one that is", r.DaemonSet)
		}
	}
	switch p := at.To("template"); {
	case r.Step != "external" && r.Step != "external-replace":
		b.onlyFor(at, r.Step, "template")
	case r.Template != nil && r.Template.Kind == remediations.MachineDeletion && r.Step == "external":
		b.Fault(at.To("step"), "%s deletes the machine, but the step external waits for a reboot as its proof; write external-replace", r.Template.Kind)
	case r.Template != nil && r.Template.Kind != remediations.MachineDeletion && r.Step == "external-replace":
		b.Fault(p.To("kind"), "is %s, and Drydock cannot prove a replacement by that kind; write %s, or the step external for a reboot", r.Template.Kind, remediations.MachineDeletion)
	case r.Template != nil:
		s.Template = *r.Template
	case !b.Faulty(p):
		b.Fault(p, "missing; write the apiVersion, kind, namespace and name of the remediator's template")
	}
}

// aboutAPIServers refuses keys that need Nodes or people's annotations on them. Drydock cannot read
// these while no API server answers.
func (b *builder) aboutAPIServers(at pointer, r *rawPolicy) {
	if r.NodeSelector != nil {
		b.Fault(at.To("nodeSelector"), "a policy about API servers cannot select nodes: it repairs the hosts of controlPlane; remove it")
	}
	if r.Approval {
		b.Fault(at.To("approval"), "no one can approve a repair while no API server answers; remove it, or write mode: observe")
	}
	if r.RepairCordoned {
		b.Fault(at.To("repairCordoned"), "Drydock cannot read whether a node is cordoned while no API server answers; remove it")
	}
	if len(r.Plan) > 1 {
		b.Fault(at.To("plan", 1), "a policy about API servers has only one step, which restarts host after host; remove this step")
	}
}

// rescueStep reads wait as the time for one host, and timeout as the time for all hosts together.
func (b *builder) rescueStep(at pointer, r *rawStep) remediations.Step {
	s := remediations.Step{Name: r.Step, Attempts: 1, Timeout: apiserver.RescueFor}
	if r.Attempts != nil && *r.Attempts != 1 {
		b.Fault(at.To("attempts"), "Drydock restarts each host's kubelet at most once per repair; remove it")
	}
	b.onlyFor(at, r.Step, "soft")
	b.onlyFor(at, r.Step, "withoutController")
	b.onlyFor(at, r.Step, "provider")
	if _, present := b.value(at.To("onTimeout")).(string); present {
		b.Fault(at.To("onTimeout"), "makes no sense on a step of API servers: the repair ends at the timeout; remove it")
	}
	b.onlyFor(at, r.Step, "unit")
	b.onlyFor(at, r.Step, "daemonSet")
	wait, waitOK := b.Duration(at.To("wait"), r.Wait, leastRescueWait)
	s.Wait = wait
	if r.Timeout == "" {
		return s
	}
	ok := false
	if s.Timeout, ok = b.Duration(at.To("timeout"), r.Timeout, leastRescueWait); !ok {
		return s
	}
	switch {
	case s.Timeout > maxRescue:
		b.Fault(at.To("timeout"), "%s is too long; write at most 1h, because after that a person must act", r.Timeout)
	case waitOK && s.Timeout < wait:
		b.Fault(at.To("timeout"), "%s is shorter than wait (%s); write a longer one, because timeout is for all hosts together and wait for one", r.Timeout, r.Wait)
	}
	return s
}
