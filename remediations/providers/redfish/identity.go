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

// wanted holds what a System must show to be the machine.
type wanted struct {
	uuid   section.UUID // zero: it does not count
	serial string
}

// wanted returns what identifies the machine. Without a serial number there must be a unique UUID.
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
		return w, kit.Refuse(kit.Machine, "the Node's status.nodeInfo.systemUUID is %s, and the UUID that is configured is %s; one of them is another machine's", node, b.uuid)
	case unusable == "":
		w.uuid = node
	case b.uuid == (section.UUID{}) && b.SerialNumber == "":
		return w, kit.Refuse(kit.Machine, "the Node's status.nodeInfo.systemUUID %s; configure the machine's uuid or serialNumber", unusable)
	}
	return w, nil
}

// is returns why the System is not the machine; empty: it is. quote makes foreign text safe to
// print.
func (w wanted) is(s *schemas.ComputerSystem, quote func(string) string) string {
	if w.serial != "" && strings.TrimSpace(s.SerialNumber) != w.serial {
		return fmt.Sprintf("has the serial number %s, and not %q", quote(s.SerialNumber), w.serial)
	}
	shown, err := section.ParseUUID(s.UUID)
	switch {
	case w.uuid == (section.UUID{}), w.serial != "" && (err != nil || shown.Shared() != ""):
		return ""
	case err != nil:
		return "has a UUID that is none: " + quote(s.UUID)
	case shown.Canonical() != w.uuid.Canonical():
		return fmt.Sprintf("has the UUID %s, and the node's machine has %s", shown, w.uuid)
	}
	return ""
}

// alone returns an error if another Node shows the same UUID, so that the System could be that
// Node's machine; nil: no other Node shows it.
func (c *Client) alone(ctx context.Context, m engine.Machine, u section.UUID) error {
	if c.o.Nodes == nil || u == (section.UUID{}) {
		return nil
	}
	all, err := c.o.Nodes(ctx)
	if err != nil {
		return &kit.Refusal{Why: kit.Passing, Text: "whether another Node has the same status.nodeInfo.systemUUID could not be read", Cause: err}
	}
	for _, n := range all {
		if other, err := section.ParseUUID(n.Status.NodeInfo.SystemUUID); err == nil && n.Name != m.Node && other.Canonical() == u.Canonical() {
			return kit.Refuse(kit.Machine, "Node %q has the same status.nodeInfo.systemUUID %s; configure the uuid or serialNumber of both", n.Name, other)
		}
	}
	return nil
}

// showing is what a BMC last showed, and one of the Nodes that it is configured for.
type showing struct {
	node  string
	uuids []section.UUID
}

// shows remembers which UUIDs the BMC has now.
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

// unique returns why another machine could be meant: another BMC shows the same UUID.
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
