// Package mesh is a cluster's network on one machine, for the tests of what
// Kilo does and what Drydock does about it: every node is a network namespace,
// every pod another one, and what goes between them are real packets.
//
//	   location west                    the wire                   location east
//	pod                                                                       pod
//	 │ veth                                                              veth │
//	west-2 ──VXLAN 8472──▶ west-1 ══tunnel 51820══▶ east-1 ──VXLAN 8472──▶ east-2
//	             ╳          leader                   leader
//	 DropNewVXLAN, at the leader: nothing new leaves it for its own members
//
// Within a location nodes reach each other's pods through a VXLAN with static
// neighbours, as Cilium and flannel have it. Between locations the leaders
// relay: the tunnel between them stands in for WireGuard, which not every
// kernel has; it is a second VXLAN on WireGuard's port. All of it is carried by
// the wire, a router with a network for each location. The wire is IPv4; pods
// have IPv4 addresses, or with NewIPv6 those of IPv6.
//
// Which node leads, and so every route between pods, is decided by [Kilo], a
// stand-in for Kilo's agents: it follows the annotations of the lab's Nodes by
// Kilo's own rule, and writes those that Kilo's agents write.
//
// The namespaces have no names: they are there as long as this process has them
// open or one of its children runs in them. Nothing is left over however the
// process ends, and meshes run side by side. What only the lab needs, such as
// the way to its API server, are sockets which this process has opened in them,
// so there is no network for it and nothing that could carry a pod's packets by
// mistake.
//
// It needs root, iproute2, nftables and nsenter, and a kernel with VXLAN.
package mesh
