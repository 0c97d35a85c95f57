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

// newActuators returns the remediations of the configured providers, and how long one call may
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
		APIURL: c.APIURL.String(), ClusterID: c.ClusterID, Region: c.Region, APIKeyFile: c.APIKeyFile,
		Timeout: c.Timeout, UserAgentVersion: thisBuild().Now(),
		Late: func(m engine.Machine, outcome remediations.CallOutcome, why error) {
			late(m.Node, m.Attempt, outcome, why)
		},
	})
	if err != nil {
		return nil, 0, err
	}
	// Each call first looks up the machine.
	return map[string]engine.Actuator{"reboot": civo.Rebooter{Client: client}, "replace": civo.Replacer{Client: client}}, 2 * c.Timeout, nil
}

// redfishSteps are the steps of the machines' BMCs.
func redfishSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	c, ok := p.cfg.Providers["redfish"].(*redfishsettings.Redfish)
	if !ok {
		return nil, 0, nil
	}
	client, err := redfish.New(redfish.Options{BMCs: c.BMCs, Timeout: c.Timeout, Nodes: p.nodes})
	if err != nil {
		return nil, 0, err
	}
	// A reset comes after four requests.
	return map[string]engine.Actuator{"reboot": redfish.Rebooter{Client: client}}, 5 * c.Timeout, nil
}

// clusterAPISteps are the steps of the Machines' owners.
func clusterAPISteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	client, c, err := p.newClusterAPI()
	if client == nil {
		return nil, 0, err
	}
	// A replacement is requested after five requests.
	return map[string]engine.Actuator{"replace": clusterapi.Replacer{Client: client}}, 6 * c.Timeout, nil
}

// clientOf makes a provider's client from its section of the configuration. Nil: there is no
// section, or the client cannot be made.
func clientOf[S section.Provider, C any](p *program, of func(S) (*C, error)) (client *C, s S, err error) {
	s, ok := config.Of[S](p.cfg)
	if ok {
		client, err = of(s)
	}
	return client, s, err
}

// newClusterAPI makes the client of Cluster API.
func (p *program) newClusterAPI() (*clusterapi.Client, *clusterapisettings.ClusterAPI, error) {
	return clientOf(p, func(c *clusterapisettings.ClusterAPI) (*clusterapi.Client, error) {
		return clusterapi.New(clusterapi.Options{API: p.rest, Kubeconfig: c.Kubeconfig, Cluster: c.Cluster, Delete: c.Delete(), Timeout: c.Timeout})
	})
}

// karpenterSteps are the steps of Karpenter.
func karpenterSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	c, ok := config.Of[*karpentersettings.Karpenter](p.cfg)
	if !ok {
		return nil, 0, nil
	}
	client, err := karpenter.New(karpenter.Options{API: p.rest, Timeout: c.Timeout, Now: time.Now, Registry: p.cfg.Core.Registry})
	if err != nil {
		return nil, 0, err
	}
	// A NodeClaim is deleted after six requests.
	return map[string]engine.Actuator{"replace": karpenter.Replacer{Client: client}}, 7 * c.Timeout, nil
}

// newExternal makes the client that creates remediation objects.
func (p *program) newExternal() (*external.Client, *externalsettings.External, error) {
	return clientOf(p, func(c *externalsettings.External) (*external.Client, error) {
		return external.New(external.Options{API: p.rest, Timeout: c.Timeout, Now: time.Now, Templates: p.templates()})
	})
}

// templates returns the templates that the plans name.
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

// externalSteps are the steps of remediators in the cluster.
func externalSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	client, c, err := p.newExternal()
	if client == nil {
		return nil, 0, err
	}
	return map[string]engine.Actuator{"external": external.Remediator{Client: client}, "external-replace": external.Replacer{Client: client}},
		time.Duration(client.Requests()) * c.Timeout, nil
}

// endingEvery is how often the leader checks which remediation objects have ended.
const endingEvery = 5 * time.Second

// ending makes the leader delete the remediation objects of ended attempts. It tries again after an
// error.
func (j *joined) ending() ([]manager.Runnable, error) {
	client, _, err := j.newExternal()
	if client == nil {
		return nil, err
	}
	e := external.Ender{Client: client, Registry: j.cfg.Core.Registry}
	return []manager.Runnable{j.again(endingEvery, j.charge.While(e.End), "remediation objects of ended attempts still exist")}, nil
}

// newAnnotation makes the client that sets annotations.
func (p *program) newAnnotation() (*annotation.Client, *annotationsettings.Annotation, error) {
	return clientOf(p, func(c *annotationsettings.Annotation) (*annotation.Client, error) {
		return annotation.New(*c, p.rest)
	})
}

// annotationSteps are the steps of controllers that act on an annotation.
func annotationSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	client, c, err := p.newAnnotation()
	if client == nil {
		return nil, 0, err
	}
	// The annotation is written after two requests at most.
	return map[string]engine.Actuator{"reboot": annotation.Rebooter{Client: client}}, 4 * c.Timeout, nil
}

// endingAnnotations makes the leader remove its annotations of ended attempts. A Drydock that only
// observes writes none.
func (j *joined) endingAnnotations() ([]manager.Runnable, error) {
	client, _, err := j.newAnnotation()
	if client == nil || !j.cfg.Enforces() {
		return nil, err
	}
	e := annotation.Ender{Client: client, Registry: j.cfg.Core.Registry, Nodes: j.nodes}
	return []manager.Runnable{j.again(endingEvery, j.charge.While(e.End), "annotations of ended attempts are still there")}, nil
}

// hostSteps are the steps on the machines behind Nodes.
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

// httpSteps are the steps of a receiver that the user provides.
func httpSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	client, c, err := clientOf(p, func(c *httpsettings.HTTP) (*httpprovider.Client, error) { return httpprovider.New(*c) })
	if client == nil || err != nil {
		return nil, 0, err
	}
	// A question comes before each action.
	return map[string]engine.Actuator{
		"reboot": httpprovider.Action{Client: client, Name: "reboot"}, "powerOff": httpprovider.NewPowerOff(client), "replace": httpprovider.NewReplacer(client),
	}, 2 * c.Timeout, nil
}

// fenceSteps are the steps of the fence agents.
func fenceSteps(p *program, _ lateAnswer) (map[string]engine.Actuator, time.Duration, error) {
	client, c, err := clientOf(p, func(c *fencesettings.Fence) (*fence.Client, error) { return fence.New(*c, p.nodes) })
	if client == nil || err != nil {
		return nil, 0, err
	}
	// A machine is switched off, or on, after one question.
	return map[string]engine.Actuator{"reboot": fence.NewRebooter(client), "powerOff": fence.NewPowerOff(client)}, 2 * c.Timeout, nil
}

// hostCalls bounds one restart on a host, including the question before it.
func hostCalls(command time.Duration) time.Duration { return 4 * command }

// daemonSetSteps restart a node's own pods.
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

// clusterWideSteps affect every node at once.
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
