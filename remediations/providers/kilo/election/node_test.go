package election

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestEndpointsAreReadAsKiloReadsThem: a node whose endpoint Kilo rejects takes no part in the
// election, and its annotation is reported as unreadable.
func TestEndpointsAreReadAsKiloReadsThem(t *testing.T) {
	for text, want := range map[string]struct {
		at   string
		host string
	}{
		"203.0.113.9:51820":           {at: "203.0.113.9:51820"},
		"[203.0.113.9]:51820":         {at: "203.0.113.9:51820"},
		"[2001:db8::1]:51820":         {at: "[2001:db8::1]:51820"},
		"[::ffff:198.51.100.1]:51820": {at: "198.51.100.1:51820"},
		"vpn.example.com:51820":       {host: "vpn.example.com"},
		"[vpn.example.com]:51820":     {host: "vpn.example.com"},
		"vpn:051820":                  {host: "vpn"},
		"1.2.3:51820":                 {host: "1.2.3"},

		"VPN.example.com:51820":     {},
		"vpn_1.example.com:51820":   {},
		"a..b:51820":                {},
		"-vpn.example.com:51820":    {},
		"vpn.example.com.:51820":    {},
		"vpn .example.com:51820":    {},
		"[fe80::1%eth0]:51820":      {},
		"[fe80::1%25eth0]:51820":    {},
		"2001:db8::1:51820":         {},
		"vpn.example.com:0":         {},
		"vpn.example.com:65536":     {},
		"vpn.example.com:+51820":    {},
		"vpn.example.com:wireguard": {},
		"vpn.example.com":           {},
		":51820":                    {},
	} {
		at, host, ok := endpoint(text)
		read := want.at != "" || want.host != ""
		require.Equal(t, read, ok, "%q", text)
		n := Read(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{EndpointKey: text}}}, DefaultTopologyLabel)
		if !read {
			require.Equal(t, EndpointKey, n.Malformed, "%q", text)
			require.Contains(t, n.NotReady(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)), "endpoint", "%q", text)
			continue
		}
		require.Empty(t, n.Malformed, "%q", text)
		require.Equal(t, want.host, host, "%q", text)
		if want.at != "" {
			require.Equal(t, netip.MustParseAddrPort(want.at), at, "%q", text)
		}
	}
}

// TestPrefixesAreReadAsKiloReadsThem: a node whose internal address Kilo rejects is a location of
// its own.
func TestPrefixesAreReadAsKiloReadsThem(t *testing.T) {
	for text, want := range map[string]bool{
		"10.0.0.1/24": true, "2001:db8::1/64": true, "::ffff:10.0.0.1/120": true,
		"10.0.0.1": false, "10.0.0.1/33": false, "fe80::1%eth0/64": false, "10.0.0.1/+8": false,
	} {
		require.Equal(t, want, prefix(text), "%q", text)
	}
}
