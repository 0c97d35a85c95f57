package fence

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	k8slabels "k8s.io/apimachinery/pkg/labels"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/internal/secretfile"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/fence/settings"
	"drydock.dev/drydock/remediations/providers/kit"
)

// maxTable bounds a table of machines: thousands of lines.
const maxTable = 1 << 20

// row is one machine of a table. An empty node or uuid is not compared.
type row struct {
	node    string
	uuid    section.UUID
	options map[string]string
}

// machine is a machine, and how its agent reaches it.
type machine struct {
	*agent
	options map[string]string // without the secrets
	own     bool              // its device serves no other machine
}

// parse reads a table. No two lines may name one Node, or one machine.
func parse(table []byte, common map[string]string) (rows []row, err error) {
	r := csv.NewReader(bytes.NewReader(table))
	r.Comment, r.TrimLeadingSpace = '#', true
	all, err := r.ReadAll()
	if err != nil {
		return nil, err // names the line
	}
	if len(all) < 2 {
		return nil, errors.New("it has no machines: its first line names the columns, and each other line has one machine")
	}
	header := all[0]
	for i, name := range header {
		switch why := settings.Forbids(name); {
		case why != "":
			return nil, fmt.Errorf("the column %.60q %s", name, why)
		case slices.Index(header, name) != i:
			return nil, fmt.Errorf("the column %q is there twice", name)
		}
	}
	seen := map[string]int{}
	for i, line := range all[1:] {
		one := row{options: maps.Clone(common)}
		var ids []string
		for at, value := range line {
			switch value = strings.TrimSpace(value); {
			case value == "":
			case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
				return nil, fmt.Errorf("machine %d: its %s has a control character", i+1, header[at])
			case header[at] == "node":
				one.node, ids = value, append(ids, "node "+value)
			case header[at] == "uuid":
				if one.uuid, err = section.ParseUUID(value); err != nil {
					return nil, fmt.Errorf("machine %d: %w", i+1, err)
				}
				if why := one.uuid.Shared(); why != "" {
					return nil, fmt.Errorf("machine %d: its UUID %s %s; name its node instead", i+1, value, why)
				}
				ids = append(ids, "uuid "+one.uuid.Canonical().String())
			default:
				one.options[header[at]] = value
			}
		}
		if len(ids) == 0 {
			return nil, fmt.Errorf("machine %d has neither node nor uuid", i+1)
		}
		for _, id := range append(ids, "the options "+fmt.Sprint(one.options)) {
			if other := seen[id]; other != 0 {
				return nil, fmt.Errorf("machines %d and %d have the same %.100s", other, i+1, id)
			}
			seen[id] = i + 1
		}
		rows = append(rows, one)
	}
	return rows, nil
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
	if a.rows, err = parse(table, a.Options); err != nil {
		return fmt.Errorf("reading machinesFile %s: %w", a.MachinesFile, err)
	}
	for _, one := range a.rows {
		for name := range a.SecretFiles {
			if _, twice := one.options[name]; twice {
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
			byName, byUUID := one.node == m.Node, one.uuid != (section.UUID{}) && one.uuid.Canonical() == uuid.Canonical()
			switch {
			case !byName && !byUUID:
				continue
			case one.node != "" && !byName, one.uuid != (section.UUID{}) && !byUUID:
				return nil, kit.Refuse(kit.Machine, "%s names node %q with the UUID %s, and the Node has the UUID %.60q, or shares it; one of them is another machine", a.MachinesFile, one.node, one.uuid, m.SystemUUID)
			}
			found = append(found, &machine{a, one.options, one.options[a.address()] != a.Options[a.address()]})
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
	if _, old := a.Options["ipaddr"]; old || len(a.rows) > 0 && a.rows[0].options["ipaddr"] != "" {
		return "ipaddr"
	}
	return "ip"
}

// kept is what a survey keeps: only this machine is acted on afterwards, whatever the table says by
// then.
type kept struct {
	Machine string `json:"machine"`
}

func (m *machine) kept() kept {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", m.Program, m.options))
	return kept{hex.EncodeToString(sum[:8])}
}
