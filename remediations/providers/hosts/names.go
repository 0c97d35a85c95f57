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

// The forms that are allowed for names in a command, and for values in a host's answer.
var (
	// A dash at the beginning would be an option of systemctl. No other character is special to a
	// shell or systemd.
	unitName    = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9:_.@-]*\.service$`)
	attemptName = regexp.MustCompile(`^[a-z0-9-]{1,64}$`)
	stateWord   = regexp.MustCompile(`^[a-z-]{1,32}$`)
	bootName    = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	invocation  = regexp.MustCompile(`^([0-9a-f]{32})?$`)
)

// maxUnit is in bytes. systemd allows 255, and restartPrefix is added to the name.
const maxUnit = 200

// Host is a machine that is reached over SSH.
type Host struct {
	// Name is the Node's name. Addresses are IP addresses, tried in this order.
	Name      string
	Addresses []string
	// Configured means that an operator wrote the addresses, so lines of known_hosts for them are
	// valid. Addresses from the kubelet need a line for the name.
	Configured bool
}

func (h Host) check() error {
	if len(validation.IsDNS1123Subdomain(h.Name)) > 0 {
		return fmt.Errorf("%q is not the name of a Node", clip(h.Name))
	}
	if len(h.Addresses) == 0 {
		return errors.New("the host has no address; check the Node's status.addresses, or controlPlane.hosts")
	}
	if len(h.Addresses) > settings.MaxAddresses {
		return fmt.Errorf("the host has %d addresses, more than %d", len(h.Addresses), settings.MaxAddresses)
	}
	for _, a := range h.Addresses {
		if ip, err := netip.ParseAddr(a); err != nil || ip.Zone() != "" {
			return fmt.Errorf("the host's address %q is not an IP address", clip(a))
		}
	}
	return nil
}

// ofNode keeps the order of types, and skips values that are not IP addresses or cannot belong to a
// machine. It returns an error if no address remains.
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
		return fmt.Errorf("%q is not the name of a unit; write one like kubelet.service", clip(unit))
	}
	return nil
}

func (c *Client) allows(unit string) error {
	if !slices.Contains(c.units, unit) {
		return fmt.Errorf("the unit %q is not one of those that Drydock may restart (%s); add it to providers.hosts.units", clip(unit), strings.Join(c.units, ", "))
	}
	return nil
}

func checkAttempt(attempt string) error {
	if !attemptName.MatchString(attempt) {
		return fmt.Errorf("%q is not the name of an attempt", clip(attempt))
	}
	return nil
}
