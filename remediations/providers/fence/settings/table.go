package settings

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"drydock.dev/drydock/internal/config/section"
)

// Machine is one line of the table of an agent's machines. An empty Node or UUID is not compared.
type Machine struct {
	Node    string
	UUID    section.UUID
	Options map[string]string
}

// Is compares the line with a Node by its name, and by the machine's UUID.
func (m Machine) Is(node string, uuid section.UUID) (byName, byUUID bool) {
	return m.Node == node, m.UUID != (section.UUID{}) && m.UUID.Canonical() == uuid.Canonical()
}

// String returns the line's node name and UUID, for messages.
func (m Machine) String() string {
	var ids []string
	if m.Node != "" {
		ids = append(ids, "node "+m.Node)
	}
	if m.UUID != (section.UUID{}) {
		ids = append(ids, "uuid "+m.UUID.String())
	}
	return strings.Join(ids, ", ")
}

// ReadTable parses a table of machines. Two lines with the same Node, UUID or options are an error.
func ReadTable(table []byte, of *Agent) ([]Machine, error) {
	rows, err := readTable(table, of)
	if err != nil {
		return nil, fmt.Errorf("reading machinesFile %s: %w", of.MachinesFile, err)
	}
	return rows, nil
}

func readTable(table []byte, of *Agent) (rows []Machine, err error) {
	r := csv.NewReader(bytes.NewReader(table))
	r.Comment, r.TrimLeadingSpace = '#', true
	all, err := r.ReadAll()
	if err != nil {
		return nil, err // the error has the number of the line
	}
	if len(all) < 2 {
		return nil, errors.New("the table has no machines; write the names of the columns in the first line, and one machine in each other line")
	}
	header := all[0]
	for i, name := range header {
		why := forbids(name)
		switch _, secret := of.SecretFiles[name]; {
		case why != "":
			return nil, fmt.Errorf("the column %.60q %s", name, why)
		case secret:
			return nil, fmt.Errorf("the column %q is also in secretFiles; remove one of the two", name)
		case slices.Index(header, name) != i:
			return nil, fmt.Errorf("the column %q exists twice; remove one", name)
		}
	}
	seen := map[string]int{}
	for i, line := range all[1:] {
		one := Machine{Options: map[string]string{}}
		maps.Copy(one.Options, of.Options)
		var ids []string
		for at, value := range line {
			switch value = strings.TrimSpace(value); {
			case value == "":
			case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }):
				return nil, fmt.Errorf("machine %d: the value of %s has a control character; remove it", i+1, header[at])
			case header[at] == "node":
				one.Node, ids = value, append(ids, "node "+value)
			case header[at] == "uuid":
				if one.UUID, err = section.ParseUUID(value); err != nil {
					return nil, fmt.Errorf("machine %d: %w", i+1, err)
				}
				if why := one.UUID.Shared(); why != "" {
					return nil, fmt.Errorf("machine %d: the UUID %s %s; write its node instead", i+1, value, why)
				}
				ids = append(ids, "uuid "+one.UUID.Canonical().String())
			default:
				one.Options[header[at]] = value
			}
		}
		if len(ids) == 0 {
			return nil, fmt.Errorf("machine %d has neither node nor uuid; write one of them", i+1)
		}
		for _, id := range append(ids, "options "+fmt.Sprint(one.Options)) {
			if other := seen[id]; other != 0 {
				return nil, fmt.Errorf("machines %d and %d have the same %.100s; correct one of them", other, i+1, id)
			}
			seen[id] = i + 1
		}
		rows = append(rows, one)
	}
	return rows, nil
}
