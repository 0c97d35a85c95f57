package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/annotation"
	annotationsettings "drydock.dev/drydock/remediations/providers/annotation/settings"
	"drydock.dev/drydock/remediations/providers/civo"
	civosettings "drydock.dev/drydock/remediations/providers/civo/settings"
	"drydock.dev/drydock/remediations/providers/clusterapi"
	clusterapisettings "drydock.dev/drydock/remediations/providers/clusterapi/settings"
	"drydock.dev/drydock/remediations/providers/daemonsets"
	kubesettings "drydock.dev/drydock/remediations/providers/daemonsets/settings"
	"drydock.dev/drydock/remediations/providers/external"
	externalsettings "drydock.dev/drydock/remediations/providers/external/settings"
	"drydock.dev/drydock/remediations/providers/fence"
	fencesettings "drydock.dev/drydock/remediations/providers/fence/settings"
	"drydock.dev/drydock/remediations/providers/hosts"
	hostsettings "drydock.dev/drydock/remediations/providers/hosts/settings"
	httpprovider "drydock.dev/drydock/remediations/providers/http"
	httpsettings "drydock.dev/drydock/remediations/providers/http/settings"
	"drydock.dev/drydock/remediations/providers/karpenter"
	karpentersettings "drydock.dev/drydock/remediations/providers/karpenter/settings"
	"drydock.dev/drydock/remediations/providers/redfish"
	redfishsettings "drydock.dev/drydock/remediations/providers/redfish/settings"
)

// newActuators returns steps by the provider's name and the step's name, and how long one call may
// take.
func (p *program) newActuators(late lateAnswer) (map[string]map[string]engine.Actuator, time.Duration, error) {
	out, longest := map[string]map[string]engine.Actuator{}, time.Duration(0)
	for _, of := range p.providers {
		steps, timeout, err := of.make(p, late)
		if err != nil {
			return nil, 0, err
		}
		out[of.name], longest = steps, max(longest, timeout)
	}
	return out, callMargin + longest, nil
}

func civoSteps(p *program, late lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	c, ok := config.Of[*civosettings.Civo](p.cfg)
	if !ok {
		return nil, 0, nil
	}
	client, err := civo.New(civo.Options{
		Civo: *c, UserAgentVersion: thisBuild().Now(),
		Late: func(m engine.Machine, outcome remediations.CallOutcome, why error) {
			late(m.Node, m.Attempt, outcome, why)
		},
	})
	if err != nil {
		return nil, 0, err
	}
	// A step sends two requests: the first looks up the machine.
	return map[string]engine.Actuator{"reboot": civo.Rebooter{Client: client}, "replace": civo.Replacer{Client: client}}, 2 * c.Timeout, nil
}

func redfishSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	c, ok := p.cfg.Providers["redfish"].(*redfishsettings.Redfish)
	if !ok {
		return nil, 0, nil
	}
	client, err := redfish.New(redfish.Options{Redfish: *c, Nodes: p.nodes})
	if err != nil {
		return nil, 0, err
	}
	// A step sends up to five requests: the reset is the last.
	return map[string]engine.Actuator{"reboot": redfish.Rebooter{Client: client}}, 5 * c.Timeout, nil
}

func clusterAPISteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	client, c, err := p.newClusterAPI()
	if client == nil {
		return nil, 0, err
	}
	// A step sends up to six requests: the last one requests the replacement.
	return map[string]engine.Actuator{"replace": clusterapi.Replacer{Client: client}}, 6 * c.Timeout, nil
}

// clientOf returns no client and no error if the configuration has no such section.
func clientOf[S section.Provider, C any](p *program, of func(S) (*C, error)) (client *C, s S, err error) {
	s, ok := config.Of[S](p.cfg)
	if ok {
		client, err = of(s)
	}
	return client, s, err
}

func (p *program) newClusterAPI() (*clusterapi.Client, *clusterapisettings.ClusterAPI, error) {
	return clientOf(p, func(c *clusterapisettings.ClusterAPI) (*clusterapi.Client, error) {
		return clusterapi.New(clusterapi.Options{ClusterAPI: *c, API: p.rest})
	})
}

func karpenterSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	c, ok := config.Of[*karpentersettings.Karpenter](p.cfg)
	if !ok {
		return nil, 0, nil
	}
	client, err := karpenter.New(karpenter.Options{Karpenter: *c, API: p.rest, Now: time.Now, Registry: p.cfg.Core.Registry})
	if err != nil {
		return nil, 0, err
	}
	// A step sends up to seven requests: the last one deletes the NodeClaim.
	return map[string]engine.Actuator{"replace": karpenter.Replacer{Client: client}}, 7 * c.Timeout, nil
}

// newExternal makes the client that creates remediation objects. A remediator in the cluster acts
// on such an object.
func (p *program) newExternal() (*external.Client, *externalsettings.External, error) {
	return clientOf(p, func(c *externalsettings.External) (*external.Client, error) {
		return external.New(external.Options{External: *c, API: p.rest, Now: time.Now, Templates: p.templates()})
	})
}

func (p *program) templates() (out []remediations.Template) {
	for _, policy := range p.cfg.Core.Policies {
		for _, step := range policy.Plan {
			if step.Template != (remediations.Template{}) {
				out = append(out, step.Template)
			}
		}
	}
	return out
}

func externalSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	client, c, err := p.newExternal()
	if client == nil {
		return nil, 0, err
	}
	return map[string]engine.Actuator{"external": external.Remediator{Client: client}, "external-replace": external.Replacer{Client: client}},
		time.Duration(client.Requests()) * c.Timeout, nil
}

const endingEvery = 5 * time.Second

// ending deletes the remediation objects of ended attempts. It runs on the leader.
func (j *joined) ending() ([]manager.Runnable, error) {
	client, _, err := j.newExternal()
	if client == nil {
		return nil, err
	}
	e := external.Ender{Client: client, Registry: j.cfg.Core.Registry}
	return []manager.Runnable{j.again(endingEvery, j.charge.While(e.End), "Drydock could not delete remediation objects of ended attempts; trying again")}, nil
}

func (p *program) newAnnotation() (*annotation.Client, *annotationsettings.Annotation, error) {
	return clientOf(p, func(c *annotationsettings.Annotation) (*annotation.Client, error) {
		return annotation.New(*c, p.rest)
	})
}

func annotationSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	client, c, err := p.newAnnotation()
	if client == nil {
		return nil, 0, err
	}
	// A step sends at most three requests: up to two that read, then the one that writes the
	// annotation.
	return map[string]engine.Actuator{"reboot": annotation.Rebooter{Client: client}}, 4 * c.Timeout, nil
}

// endingAnnotations removes the annotations of ended attempts. It runs on the leader. If Drydock
// only observes, it writes no such annotation, so there is no such part.
func (j *joined) endingAnnotations() ([]manager.Runnable, error) {
	client, _, err := j.newAnnotation()
	if client == nil || !j.cfg.Enforces() {
		return nil, err
	}
	e := annotation.Ender{Client: client, Registry: j.cfg.Core.Registry, Nodes: j.nodes}
	return []manager.Runnable{j.again(endingEvery, j.charge.While(e.End), "Drydock could not remove its annotations of ended attempts; trying again")}, nil
}

func hostSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	c, ok := config.Of[*hostsettings.Hosts](p.cfg)
	if !ok {
		return nil, 0, nil
	}
	machines := hosts.Machines{Client: p.hosts, Nodes: p.clients.CoreV1().Nodes()}
	for _, t := range c.AddressTypes {
		machines.Types = append(machines.Types, corev1.NodeAddressType(t))
	}
	return map[string]engine.Actuator{
		"restart-unit":       hosts.Unit{Machines: machines},
		"restart-kubelet":    hosts.Unit{Machines: machines, Name: c.Kubelet},
		"restart-containerd": hosts.Unit{Machines: machines, Name: c.Containerd},
		"reboot":             hosts.Rebooter{Machines: machines, How: hosts.Clean},
		"sysrq":              hosts.Rebooter{Machines: machines, How: hosts.Sysrq},
	}, hostCalls(c.Timeout), nil
}

func httpSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	client, c, err := clientOf(p, func(c *httpsettings.HTTP) (*httpprovider.Client, error) { return httpprovider.New(*c) })
	if client == nil || err != nil {
		return nil, 0, err
	}
	// A step sends two requests: a query comes before each action.
	return map[string]engine.Actuator{
		"reboot": httpprovider.Action{Client: client, Name: "reboot"}, "powerOff": httpprovider.NewPowerOff(client), "replace": httpprovider.NewReplacer(client),
	}, 2 * c.Timeout, nil
}

func fenceSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	client, c, err := clientOf(p, func(c *fencesettings.Fence) (*fence.Client, error) { return fence.New(*c, p.nodes) })
	if client == nil || err != nil {
		return nil, 0, err
	}
	// A step runs the fence agent twice: it queries the power state before it switches.
	return map[string]engine.Actuator{"reboot": fence.NewRebooter(client), "powerOff": fence.NewPowerOff(client)}, 2 * c.Timeout, nil
}

// hostCalls returns the time limit of one restart, which runs several commands: it also reads the
// unit's state.
func hostCalls(command time.Duration) time.Duration { return 4 * command }

func daemonSetSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	c, ok := config.Of[*kubesettings.DaemonSets](p.cfg)
	if !ok {
		return nil, 0, nil
	}
	steps := map[string]engine.Actuator{}
	for step, name := range map[string]types.NamespacedName{"restart-kube-proxy": c.KubeProxy, "restart-cni": c.CNI} {
		if name.Name != "" {
			steps[step] = daemonsets.Pod{Client: p.clients, DaemonSet: name}
		}
	}
	return steps, 0, nil
}

func clusterWideSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	wide, ok := config.Of[*kubesettings.ClusterWide](p.cfg)
	if !ok {
		return nil, 0, nil
	}
	steps := map[string]engine.Actuator{}
	if len(wide.RolloutRestart) > 0 {
		steps["rollout-restart"] = daemonsets.Rollouts{Client: p.clients, Allowed: wide.RolloutRestart, Now: time.Now}
	}
	if c := wide.CNI; c != nil {
		steps["apply-cni"] = daemonsets.CNI{
			Client: p.clients, File: c.File, ConfigMap: c.ConfigMap, Key: c.ConfigMapKey, DaemonSet: c.DaemonSet,
		}
	}
	return steps, 0, nil
}
