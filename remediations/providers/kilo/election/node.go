package election

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"drydock.dev/drydock/internal/text"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Kilo's annotations on Nodes.
const (
	LeaderKey          = "kilo.squat.ai/leader"
	LocationKey        = "kilo.squat.ai/location"
	EndpointKey        = "kilo.squat.ai/endpoint"
	ForceEndpointKey   = "kilo.squat.ai/force-endpoint"
	InternalIPKey      = "kilo.squat.ai/internal-ip"
	ForceInternalIPKey = "kilo.squat.ai/force-internal-ip"
	PublicKeyKey       = "kilo.squat.ai/key"
	LastSeenKey        = "kilo.squat.ai/last-seen"
	WireGuardIPKey     = "kilo.squat.ai/wireguard-ip"
	GranularityKey     = "kilo.squat.ai/granularity"
	KeepaliveKey       = "kilo.squat.ai/persistent-keepalive"
)

// Keys are all of Kilo's annotations that the election of a leader reads.
var Keys = []string{
	LeaderKey, LocationKey, EndpointKey, ForceEndpointKey, InternalIPKey, ForceInternalIPKey, PublicKeyKey, LastSeenKey, WireGuardIPKey,
	GranularityKey, KeepaliveKey,
}

// DefaultTopologyLabel has a node's location if no annotation has it. kg's flag --topology-label
// can name another label.
const DefaultTopologyLabel = "topology.kubernetes.io/region"

// Kilo counts a node for seenFor after the last write of the node's Kilo agent, which writes every
// 30 seconds.
const seenFor = 60 * time.Second

// Node is a Node as Kilo's agents see it.
type Node struct {
	Name, Location string
	// Endpoint is the address at which other locations reach the node. It is zero if the Node has
	// no valid endpoint, or if the endpoint is a host name, which is in Host.
	Endpoint netip.AddrPort
	Host     string
	// Internal means that the node has an internal address. A node without one is a location of its
	// own.
	Internal bool
	// Leader means that the leader annotation exists, whatever its value.
	Leader bool
	// WireGuard means that the node has an address in the mesh. Only leaders have one.
	WireGuard   bool
	Granularity string
	// Keepalive is the interval of keepalive packets to the node's peers, which keep a NAT open.
	Keepalive string
	// Seen is when Kilo's agent on the node last wrote its annotations.
	Seen time.Time
	// Malformed names the first annotation whose value is invalid, if there is one.
	Malformed string
	lacks     string
	// resolvesPublic assumes that Host resolves to a public address.
	resolvesPublic bool
}

// Read returns a Node as Kilo sees it. An invalid value counts as missing, and Kilo does not elect
// a node that lacks something.
func Read(n *corev1.Node, topologyLabel string) Node {
	a := n.Annotations
	k := Node{Name: n.Name, WireGuard: a[WireGuardIPKey] != "", Granularity: a[GranularityKey], Keepalive: a[KeepaliveKey], Malformed: malformed(a)}
	_, k.Leader = a[LeaderKey]
	forced, ok := a[ForceInternalIPKey]
	none := ok && (forced == "" || forced == "-")
	k.Internal = !none && (prefix(forced) || prefix(a[InternalIPKey]))
	if k.Location = Declared(n, topologyLabel); !k.Internal {
		k.Location = OwnLocation(n.Name)
	}
	if k.Endpoint, k.Host, ok = endpoint(a[ForceEndpointKey]); !ok {
		k.Endpoint, k.Host, ok = endpoint(a[EndpointKey])
	}
	seconds, err := strconv.ParseInt(a[LastSeenKey], 10, 64)
	if err == nil {
		k.Seen = time.Unix(seconds, 0)
	}
	switch {
	case !ok:
		k.lacks = "an endpoint that can be read (" + EndpointKey + ")"
	case !publicKey(a[PublicKeyKey]):
		k.lacks = "a public key (" + PublicKeyKey + ")"
	case !prefix(n.Spec.PodCIDR):
		k.lacks = "a pod CIDR"
	case err != nil:
		k.lacks = "a time at which it was last seen (" + LastSeenKey + ")"
	}
	return k
}

// Declared returns the location in the Node's annotation or label. Kilo ignores it if the node has
// no internal address.
func Declared(n *corev1.Node, topologyLabel string) string {
	if location, ok := n.Annotations[LocationKey]; ok {
		return location // an empty annotation still overrides the label
	}
	return n.Labels[topologyLabel]
}

// OwnLocation returns the location of a node without an internal address.
func OwnLocation(name string) string { return "node:" + name }

// NotReady returns why Kilo leaves the node out of the mesh, or "" if the node is part of it.
func (n Node) NotReady(now time.Time) string {
	switch age := now.Sub(n.Seen); {
	case n.lacks != "":
		return "it lacks " + n.lacks
	case age.Truncate(time.Second) >= seenFor:
		return fmt.Sprintf("its Kilo agent last wrote %s ago", text.Duration(age.Truncate(time.Second)))
	}
	return ""
}

// Public reports whether Kilo treats the endpoint as reachable from the internet: every IPv4
// address outside RFC 1918, and every IPv6 address that does not begin with fd00. A host name
// counts as not public, because each of Kilo's agents resolves it for itself.
func (n Node) Public() bool {
	if n.resolvesPublic {
		return true
	}
	ip := n.Endpoint.Addr().Unmap()
	switch {
	case ip.Is4():
		return !ip.IsPrivate()
	case ip.Is6():
		b := ip.As16()
		return b[0] != 0xfd || b[1] != 0
	}
	return false
}

// An empty value is valid: Kilo's agents write it for an unknown value.
func malformed(a map[string]string) string {
	for _, k := range []struct {
		key  string
		good func(string) bool
	}{
		{ForceEndpointKey, isEndpoint},
		{EndpointKey, isEndpoint},
		{ForceInternalIPKey, func(v string) bool { return v == "-" || prefix(v) }},
		{InternalIPKey, prefix},
		{PublicKeyKey, func(v string) bool {
			key, err := base64.StdEncoding.DecodeString(v)
			return err == nil && len(key) == 32
		}},
		{LastSeenKey, func(v string) bool { _, err := strconv.ParseInt(v, 10, 64); return err == nil }},
		{WireGuardIPKey, func(v string) bool { _, err := netip.ParseAddr(v); return err == nil || prefix(v) }},
	} {
		if v := a[k.key]; v != "" && !k.good(v) {
			return k.key
		}
	}
	return ""
}

func isEndpoint(text string) bool { _, _, ok := endpoint(text); return ok }

// endpoint parses exactly as Kilo does (ParseEndpoint in its package wireguard, unchanged since
// 0.7.0). If it accepted more, Drydock would compute the wrong leader.
func endpoint(text string) (at netip.AddrPort, host string, ok bool) {
	host, number, err := net.SplitHostPort(text)
	if err != nil {
		return netip.AddrPort{}, "", false
	}
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil || port == 0 {
		return netip.AddrPort{}, "", false
	}
	// net.ParseIP accepts no IPv6 zones, but netip does.
	if ip, isIP := netip.AddrFromSlice(net.ParseIP(host)); isIP {
		return netip.AddrPortFrom(ip.Unmap(), uint16(port)), "", true
	}
	return netip.AddrPort{}, host, len(validation.IsDNS1123Subdomain(host)) == 0
}

func prefix(text string) bool { _, _, err := net.ParseCIDR(text); return err == nil }

func publicKey(text string) bool {
	key, err := base64.StdEncoding.DecodeString(text)
	return err == nil && len(key) == 32 && !bytes.Equal(key, make([]byte, 32))
}
