package fence

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/internal/secretfile"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/fence/settings"
	"drydock.dev/drydock/remediations/providers/kit"
)

// maxTable bounds a table of machines: thousands of lines.
const maxTable = 1 << 20

// machine is a machine, and how its agent reaches it.
type machine struct {
	*agent
	options map[string]string // without the secrets
	own     bool              // its device serves no other machine
}

// read reads the agent's table.
func (a *agent) read() (err error) {
	if a.MachinesFile == "" {
		return nil
	}
	table, err := secretfile.Read("machinesFile", a.MachinesFile, maxTable)
	if err != nil {
		return err
	}
	if a.rows, err = settings.ReadTable(table, a.Options); err != nil {
		return fmt.Errorf("reading machinesFile %s: %w", a.MachinesFile, err)
	}
	for _, one := range a.rows {
		for name := range a.SecretFiles {
			if _, twice := one.Options[name]; twice {
				return fmt.Errorf("reading machinesFile %s: the column %s is one of secretFiles, too", a.MachinesFile, name)
			}
		}
	}
	return nil
}

// find returns the only machine that is the Node's.
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
			uuid, twin = section.UUID{}, fmt.Sprintf("; its UUID does not count, because Node %s has the same", n.Name)
		}
	}
	var found []*machine
	for _, a := range c.agents {
		for _, one := range a.rows {
			byName, byUUID := one.Node == m.Node, one.UUID != (section.UUID{}) && one.UUID.Canonical() == uuid.Canonical()
			switch {
			case !byName && !byUUID:
				continue
			case one.Node != "" && !byName, one.UUID != (section.UUID{}) && !byUUID:
				return nil, kit.Refuse(kit.Machine, "%s names node %q with the UUID %s, and the Node has the UUID %.60q, or shares it; one of them is another machine", a.MachinesFile, one.Node, one.UUID, m.SystemUUID)
			}
			found = append(found, &machine{a, one.Options, one.Options[a.address()] != a.Options[a.address()]})
		}
		if a.Selector != nil && labels != nil && a.Selector.Matches(labels) {
			options := map[string]string{}
			for name, value := range a.Options {
				options[name] = strings.ReplaceAll(value, settings.PerNode, m.Node)
			}
			found = append(found, &machine{a, options, options[a.address()] != a.Options[a.address()]})
		}
	}
	switch len(found) {
	case 0:
		return nil, kit.Refuse(kit.Machine, "no agent of providers.fence names this node; add its machine to a machinesFile%s", twin)
	case 1:
		return found[0], nil
	}
	return nil, kit.Refuse(kit.Machine, "%d machines of providers.fence are named for this node; remove all but one", len(found))
}

// address returns the option that has the device's address.
func (a *agent) address() string {
	if _, old := a.Options["ipaddr"]; old || len(a.rows) > 0 && a.rows[0].Options["ipaddr"] != "" {
		return "ipaddr"
	}
	return "ip"
}

// kept is what a survey keeps: only this machine is acted on afterwards, whatever the table says by
// then. Node and SystemUUID name the machine for a later proof; empty: the step needs no such
// proof.
type kept struct {
	Machine    string `json:"machine"`
	Node       string `json:"node,omitempty"`
	SystemUUID string `json:"systemUUID,omitempty"`
}

// named reads what a survey kept for a later proof.
func named(b remediations.Before) (was kept, err error) {
	if err = b.Read(&was); err == nil && was.Node == "" {
		err = errors.New("the record does not name the Node of the machine")
	}
	return was, err
}

func (m machine) kept() kept {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", m.Program, m.options))
	return kept{Machine: hex.EncodeToString(sum[:8])}
}
