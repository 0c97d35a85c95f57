package hosts

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

type network struct {
	wire   *namespace
	number int // the number of the network, also in the name of this machine's device
}

// The name of this machine's network device reserves the network's number until the namespace at
// the other end is gone. The addresses are in 198.18.0.0/15, which RFC 2544 reserves for labs and
// which is not routed.
func newNetwork() (*network, error) {
	wire, err := newNamespace(unix.CLONE_NEWNET)
	if err != nil {
		return nil, err
	}
	n := &network{wire: wire}
	if err := n.build(); err != nil {
		wire.close()
		return nil, err
	}
	return n, nil
}

func (n *network) build() error {
	if err := n.wire.ip("link add bridge type bridge", "link set bridge up"); err != nil {
		return err
	}
	for i := range 256 {
		n.number = (os.Getpid() + i) % 256
		err := ip(fmt.Sprintf("link add %s type veth peer name machine netns %s", n.device(), n.wire.path()))
		if err != nil && strings.Contains(err.Error(), "File exists") {
			continue
		}
		if err != nil {
			return err
		}
		if err := n.wire.ip("link set machine master bridge up"); err != nil {
			return err
		}
		return ip(fmt.Sprintf("addr add %s/24 dev %s", n.address(1), n.device()), "link set "+n.device()+" up")
	}
	return errors.New("making a network for hosts: all 256 are in use")
}

func (n *network) device() string { return fmt.Sprintf("drydock%d", n.number) }

func (n *network) address(host int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18, byte(n.number), byte(host)})
}

func (n *network) connect(host int) (*namespace, error) {
	at, err := newNamespace(unix.CLONE_NEWNET)
	if err != nil {
		return nil, err
	}
	port := fmt.Sprintf("port%d", host)
	err = n.wire.ip(
		fmt.Sprintf("link add %s type veth peer name eth0 netns %s", port, at.path()),
		fmt.Sprintf("link set %s master bridge up", port),
	)
	if err == nil {
		err = at.ip("link set lo up", "link set eth0 up", fmt.Sprintf("addr add %s/24 dev eth0", n.address(host)))
	}
	if err != nil {
		at.close()
		return nil, err
	}
	return at, nil
}

// IP runs commands of ip(8) in the host's network. Their effect remains when the host reboots.
func (h *Host) IP(lines ...string) error { return h.network.ip(lines...) }

func (n *network) plug(host int, in bool) error {
	state := "down"
	if in {
		state = "up"
	}
	return n.wire.ip(fmt.Sprintf("link set port%d %s", host, state))
}

func (n *network) close() { n.wire.close() }
