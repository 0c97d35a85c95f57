package fence

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"strings"

	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/internal/secretfile"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/fence/settings"
	"drydock.dev/drydock/remediations/providers/kit"
)

// maxTable is in bytes. Thousands of lines fit.
const maxTable = 1 << 20

type agent struct {
	settings.Agent
	rows    []settings.Machine
	secrets redact.Keyring
}

func newAgent(in settings.Agent) (*agent, error) {
	a := &agent{Agent: in, secrets: redact.Keyring{Mark: "[secret]"}}
	if _, err := exec.LookPath(in.Program); err != nil || in.MachinesFile == "" {
		return a, err
	}
	table, err := secretfile.Read("machinesFile", in.MachinesFile, maxTable)
	if err == nil {
		a.rows, err = settings.ReadTable(table, &in)
	}
	return a, err
}

type machine struct {
	*agent
	options map[string]string // without the secrets
}

// find returns an error if the machine is not certain, or is no longer the machine in m.Before.
func (c *Client) find(ctx context.Context, m engine.Machine) (*machine, error) {
	nodes, err := c.nodes(ctx)
	if err != nil {
		return nil, &kit.Refusal{Why: kit.Passing, Text: "the cluster's Nodes could not be read", Cause: err}
	}
	uuid, _ := section.ParseUUID(m.SystemUUID)
	var labels k8slabels.Set
	twin := ""
	for _, n := range nodes {
		if n.Name == m.Node {
			labels = n.Labels
		} else if u, err := section.ParseUUID(n.Status.NodeInfo.SystemUUID); err == nil && u.Canonical() == uuid.Canonical() {
			uuid, twin = section.UUID{}, fmt.Sprintf("; its UUID is not used, because Node %s has the same one", n.Name)
		}
	}
	var found []*machine
	for _, a := range c.agents {
		for _, one := range a.rows {
			byName, byUUID := one.Is(m.Node, uuid)
			switch {
			case !byName && !byUUID:
				continue
			case one.Node != "" && !byName, one.UUID != (section.UUID{}) && !byUUID:
				return nil, kit.Refuse(kit.Machine, "%s has node %q with the UUID %s, but the Node has the UUID %.60q, or shares it with another Node; one of them is another machine", a.MachinesFile, one.Node, one.UUID, m.SystemUUID)
			}
			found = append(found, &machine{a, one.Options})
		}
		if a.Selector != nil && labels != nil && a.Selector.Matches(labels) {
			options := map[string]string{}
			for name, value := range a.Options {
				options[name] = strings.ReplaceAll(value, settings.PerNode, m.Node)
			}
			found = append(found, &machine{a, options})
		}
	}
	var was kept
	switch {
	case len(found) == 0:
		return nil, kit.Refuse(kit.Machine, "no agent of providers.fence has this node; add its machine to a machinesFile%s", twin)
	case len(found) > 1:
		return nil, kit.Refuse(kit.Machine, "providers.fence has %d machines for this node; remove all but one", len(found))
	case m.Before != "" && (m.Before.Read(&was) != nil || was.Machine != found[0].digest()):
		return nil, kit.Refuse(kit.Machine, "the configuration has changed since the decision: it now has another machine or other options for this node")
	}
	return found[0], nil
}

func address(options map[string]string) string { return cmp.Or(options["ipaddr"], options["ip"]) }

func (m *machine) device() string { return m.Program + " " + address(m.options) }

// own reports whether the power device serves only this machine: its address is in the machine's
// line of the table, and not in the agent's options.
func (m *machine) own() bool { return address(m.options) != address(m.Options) }

// kept is recorded on the Node. Machine is a digest of the agent and its options: later calls
// refuse if the configuration has changed. Node and SystemUUID find the machine for a later proof.
type kept struct {
	Machine    string `json:"machine"`
	Node       string `json:"node,omitempty"`
	SystemUUID string `json:"systemUUID,omitempty"`
}

func (m *machine) digest() string {
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Appendf(nil, "%q %q", m.Program, m.options)))[:16]
}
