package redfish

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/stmcginnis/gofish/schemas"

	"drydock.dev/drydock/remediations/engine"
)

// uuid is a machine's, in the order of bytes in which it is written.
type uuid [16]byte

func parseUUID(s string) (uuid, error) {
	var u uuid
	groups := strings.Split(strings.TrimSpace(s), "-")
	if len(groups) == 5 && len(groups[0]) == 8 && len(groups[1]) == 4 && len(groups[2]) == 4 && len(groups[3]) == 4 && len(groups[4]) == 12 {
		if b, err := hex.DecodeString(strings.Join(groups, "")); err == nil {
			copy(u[:], b)
			return u, nil
		}
	}
	return u, fmt.Errorf("%.60q is not a UUID", s)
}

func (u uuid) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// swapped is the UUID with the bytes of its first three groups the other way round. SMBIOS stores them little-endian, and firmware
// gets it wrong in either place: a BMC and Linux's product_uuid may show the same machine in two ways, and an update may change
// which.
func (u uuid) swapped() uuid {
	return uuid{u[3], u[2], u[1], u[0], u[5], u[4], u[7], u[6], u[8], u[9], u[10], u[11], u[12], u[13], u[14], u[15]}
}

// canonical is the same for both orders.
func (u uuid) canonical() uuid {
	if s := u.swapped(); string(s[:]) < string(u[:]) {
		return s
	}
	return u
}

// manyHave are UUIDs that whole series of boards have, each reported in public by its owners.
var manyHave = []string{
	"03000200-0400-0500-0006-000700080009", // many boards with AMI's firmware
	"31393138-3538-5a43-3135-353130323750", // HPE ProLiant MicroServer Gen8
	"8a95d198-7f46-11e5-bf8b-08002704d48e", // SolidRun LX2160A
	"00000000-0000-0000-0807-060504030201",
	"00112233-4455-6677-8899-aabbccddeeff", // the example of the standard
}

// shared says why the UUID tells no machine from another; empty: it may.
func (u uuid) shared() string {
	same := true
	for _, b := range u {
		same = same && b == u[0]
	}
	if same {
		return "is one byte sixteen times, which firmware shows that has no UUID"
	}
	for _, s := range manyHave {
		if known, err := parseUUID(s); err == nil && known.canonical() == u.canonical() {
			return "is that of a whole series of machines"
		}
	}
	return ""
}

// wanted is what a System must show to be the machine.
type wanted struct {
	uuid   uuid // zero: it does not count
	serial string
}

// wanted says by what the machine is told from others. Without a serial number there must be a UUID that is unique.
func (b *bmc) wanted(m engine.Machine) (wanted, error) {
	w := wanted{uuid: b.uuid, serial: b.SerialNumber}
	node, err := parseUUID(m.SystemUUID)
	unusable := ""
	switch {
	case m.SystemUUID == "":
		unusable = "is empty"
	case err != nil:
		unusable = err.Error()
	default:
		unusable = node.shared()
	}
	switch {
	case unusable == "" && b.uuid != (uuid{}) && node.canonical() != b.uuid.canonical():
		return w, &callError{why: forMachine, text: fmt.Sprintf("the Node's status.nodeInfo.systemUUID is %s, and the UUID that is configured is %s; one of them is another machine's", node, b.uuid)}
	case unusable == "":
		w.uuid = node
	case b.uuid == (uuid{}) && b.SerialNumber == "":
		return w, &callError{why: forMachine, text: fmt.Sprintf("the Node's status.nodeInfo.systemUUID %s; configure the machine's uuid or serialNumber", unusable)}
	}
	return w, nil
}

// is says why the System is not the machine; empty: it is. quote makes foreign text fit to be seen.
func (w wanted) is(s *schemas.ComputerSystem, quote func(string) string) string {
	if w.serial != "" && strings.TrimSpace(s.SerialNumber) != w.serial {
		return fmt.Sprintf("has the serial number %s, and not %q", quote(s.SerialNumber), w.serial)
	}
	shown, err := parseUUID(s.UUID)
	switch {
	case w.uuid == (uuid{}), w.serial != "" && (err != nil || shown.shared() != ""):
		return ""
	case err != nil:
		return "has a UUID that is none: " + quote(s.UUID)
	case shown.canonical() != w.uuid.canonical():
		return fmt.Sprintf("has the UUID %s, and the node's machine has %s", shown, w.uuid)
	}
	return ""
}

// alone is the error that another Node shows the same UUID, so that the machine could be that one's; nil: none does.
func (c *Client) alone(ctx context.Context, m engine.Machine, u uuid) error {
	if c.o.Nodes == nil || u == (uuid{}) {
		return nil
	}
	all, err := c.o.Nodes(ctx)
	if err != nil {
		return &callError{why: forNow, text: "whether another Node has the same status.nodeInfo.systemUUID could not be read", cause: err}
	}
	for _, n := range all {
		if other, err := parseUUID(n.Status.NodeInfo.SystemUUID); err == nil && n.Name != m.Node && other.canonical() == u.canonical() {
			return &callError{why: forMachine, text: fmt.Sprintf("Node %q has the same status.nodeInfo.systemUUID %s; configure the serialNumber of both", n.Name, other)}
		}
	}
	return nil
}

// showing is what a BMC last showed, and one of the Nodes it is configured for.
type showing struct {
	node  string
	uuids []uuid
}

// shows remembers which UUIDs the BMC has now.
func (c *Client) shows(b *bmc, all []*schemas.ComputerSystem) {
	now := showing{node: b.Node}
	for _, s := range all {
		if u, err := parseUUID(s.UUID); err == nil {
			now.uuids = append(now.uuids, u.canonical())
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown[b.url.Host] = now
}

// unique says why another machine could be meant: another BMC shows the same UUID.
func (c *Client) unique(b *bmc, s *schemas.ComputerSystem) string {
	u, err := parseUUID(s.UUID)
	if err != nil || b.SerialNumber != "" {
		return ""
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for host, other := range c.shown {
		if host != b.url.Host && slices.Contains(other.uuids, u.canonical()) {
			return fmt.Sprintf("the BMC of node %q shows the same UUID %s; configure the serialNumber of both", other.node, u)
		}
	}
	return ""
}
