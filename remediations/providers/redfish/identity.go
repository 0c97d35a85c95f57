package redfish

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/kit"
)

type wanted struct {
	uuid   section.UUID // zero if it is not to be compared
	serial string
}

// Without a configured UUID or serial number, the Node's systemUUID must be usable. If a UUID is
// configured and the systemUUID is usable, the two must be equal.
func (b *bmc) wanted(m engine.Machine) (wanted, error) {
	w := wanted{uuid: b.uuid, serial: b.SerialNumber}
	node, err := section.ParseUUID(m.SystemUUID)
	unusable := ""
	switch {
	case m.SystemUUID == "":
		unusable = "is empty"
	case err != nil:
		unusable = err.Error()
	default:
		unusable = node.Shared()
	}
	switch {
	case unusable == "" && b.uuid != (section.UUID{}) && node.Canonical() != b.uuid.Canonical():
		return w, kit.Refuse(kit.Machine, "the Node's status.nodeInfo.systemUUID is %s, but the configured UUID is %s; one of them belongs to another machine", node, b.uuid)
	case unusable == "":
		w.uuid = node
	case b.uuid == (section.UUID{}) && b.SerialNumber == "":
		return w, kit.Refuse(kit.Machine, "the Node's status.nodeInfo.systemUUID %s; configure the machine's uuid or serialNumber", unusable)
	}
	return w, nil
}

// is returns "" if the System is the node's machine, and otherwise the difference. quote makes
// foreign text safe to print.
func (w wanted) is(s *schemas.ComputerSystem, quote func(string) string) string {
	if w.serial != "" && strings.TrimSpace(s.SerialNumber) != w.serial {
		return fmt.Sprintf("has the serial number %s instead of %q", quote(s.SerialNumber), w.serial)
	}
	shown, err := section.ParseUUID(s.UUID)
	switch {
	case w.uuid == (section.UUID{}), w.serial != "" && (err != nil || shown.Shared() != ""):
		return ""
	case err != nil:
		return "has an invalid UUID: " + quote(s.UUID)
	case shown.Canonical() != w.uuid.Canonical():
		return fmt.Sprintf("has the UUID %s, but the node's machine has %s", shown, w.uuid)
	}
	return ""
}

// Another Node with the same UUID could be the one that the System belongs to.
func (c *Client) alone(ctx context.Context, m engine.Machine, u section.UUID) error {
	if c.o.Nodes == nil || u == (section.UUID{}) {
		return nil
	}
	all, err := c.o.Nodes(ctx)
	if err != nil {
		return &kit.Refusal{Why: kit.Passing, Text: "Drydock could not check whether another Node has the same status.nodeInfo.systemUUID", Cause: err}
	}
	for _, n := range all {
		if other, err := section.ParseUUID(n.Status.NodeInfo.SystemUUID); err == nil && n.Name != m.Node && other.Canonical() == u.Canonical() {
			return kit.Refuse(kit.Machine, "Node %q has the same status.nodeInfo.systemUUID %s; configure the uuid or serialNumber of both", n.Name, other)
		}
	}
	return nil
}

// showing has the UUIDs of all Systems that a BMC listed last. node is a Node of this BMC, for
// messages.
type showing struct {
	node  string
	uuids []section.UUID
}

func (c *Client) shows(b *bmc, all []*member) {
	now := showing{node: b.Node}
	for _, s := range all {
		if u, err := section.ParseUUID(s.UUID); err == nil {
			now.uuids = append(now.uuids, u.Canonical())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown[b.url.Host] = now
}

// unique returns a text for a message if another BMC shows the same UUID, because the System could
// then be another machine. A configured serial number is enough.
func (c *Client) unique(b *bmc, s *schemas.ComputerSystem) string {
	u, err := section.ParseUUID(s.UUID)
	if err != nil || b.SerialNumber != "" {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for host, other := range c.shown {
		if host != b.url.Host && slices.Contains(other.uuids, u.Canonical()) {
			return fmt.Sprintf("the BMC of node %q shows the same UUID %s; configure the serialNumber of both", other.node, u)
		}
	}
	return ""
}
