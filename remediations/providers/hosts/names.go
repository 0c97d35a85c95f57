package hosts

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/remediations/providers/hosts/settings"
)

// The forms that are allowed in a command, and in a host's answer.
var (
	// unitName does not begin with a dash, so that it cannot be an option. It contains nothing that
	// a shell or systemd would interpret.
	unitName    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9:_.@-]*\.service$`)
	attemptName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	userName    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$`)
	stateWord   = regexp.MustCompile(`^[a-z-]{1,32}$`)
	bootName    = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	invocation  = regexp.MustCompile(`^([0-9a-f]{32})?$`)
)

// maxUnit leaves room for the prefix: systemd takes 255 bytes.
const maxUnit = 200

// Host is a machine that sshd runs on.
type Host struct {
	// Name is the name of its Node. Addresses are IPs, tried in this order.
	Name      string
	Addresses []string
	// Configured: an operator has written the addresses, so that a line of known_hosts about one of
	// them counts. The addresses of a Node are what its kubelet reports, and only lines about its
	// name count.
	Configured bool
}

func (h Host) check() error {
	if len(validation.IsDNS1123Subdomain(h.Name)) > 0 {
		return fmt.Errorf("%q is not the name of a Node", clip(h.Name))
	}
	if len(h.Addresses) == 0 {
		return errors.New("it has no address; check the Node's status.addresses, or controlPlane.hosts")
	}
	if len(h.Addresses) > settings.MaxAddresses {
		return fmt.Errorf("it has %d addresses, more than %d", len(h.Addresses), settings.MaxAddresses)
	}
	for _, a := range h.Addresses {
		if ip, err := netip.ParseAddr(a); err != nil || ip.Zone() != "" {
			return fmt.Errorf("its address %q is not an IP address", clip(a))
		}
	}
	return nil
}

// ofNode returns the host behind a Node: those of its addresses that have one of the types, in the
// types' order. Entries that are not IP addresses, and addresses that cannot belong to a machine,
// are left out; if none remains, it returns an error.
func ofNode(n *corev1.Node, types []corev1.NodeAddressType) (Host, error) {
	h := Host{Name: n.Name}
	for _, t := range types {
		for _, a := range n.Status.Addresses {
			ip, err := netip.ParseAddr(a.Address)
			if a.Type != t || err != nil || ip.Zone() != "" || ip.IsUnspecified() || ip.IsMulticast() || slices.Contains(h.Addresses, ip.String()) {
				continue
			}
			h.Addresses = append(h.Addresses, ip.String())
		}
	}
	h.Addresses = h.Addresses[:min(len(h.Addresses), settings.MaxAddresses)]
	if err := h.check(); err != nil {
		return Host{}, fmt.Errorf("finding the host of node %q: %w", clip(n.Name), err)
	}
	return h, nil
}

func checkUnit(unit string) error {
	if len(unit) > maxUnit || !unitName.MatchString(unit) || strings.HasPrefix(unit, restartPrefix) {
		return fmt.Errorf("%q is not the name of a unit, for example kubelet.service", clip(unit))
	}
	return nil
}

// allows returns an error unless the unit is one that New has checked.
func (c *Client) allows(unit string) error {
	if !slices.Contains(c.o.Units, unit) {
		return fmt.Errorf("%q is not one of the units that may be named here (%s); providers.hosts.units names further ones", clip(unit), strings.Join(c.o.Units, ", "))
	}
	return nil
}

func checkAttempt(attempt string) error {
	if !attemptName.MatchString(attempt) {
		return fmt.Errorf("%q is not the name of an attempt", clip(attempt))
	}
	return nil
}
