// Package mesh simulates a cluster's network on one machine, for tests of Kilo's behaviour and of
// Drydock's reaction to it. Every node is a network namespace, and so is every pod. Real packets go
// between them.
//
//	   location west                    the wire                   location east
//	pod                                                                       pod
//	 │ veth                                                              veth │
//	west-2 ──VXLAN 8472──▶ west-1 ══tunnel 51820══▶ east-1 ──VXLAN 8472──▶ east-2
//	             ╳          leader                   leader
//	 DropNewVXLAN, at the leader: nothing new leaves it for its own members
//
// Within a location, nodes reach each other's pods through a VXLAN with static neighbours, like
// Cilium's and flannel's. Between locations, the leaders relay through a tunnel. The tunnel is a
// second VXLAN on WireGuard's port, because not every kernel has WireGuard. Everything goes over
// the wire, a router with a network for each location. The wire uses IPv4. Pods have IPv4 addresses
// or, with NewIPv6, IPv6 addresses.
//
// [Kilo] simulates Kilo's agents. It decides which node leads each location, and so sets every
// route between pods. It follows the annotations of the lab's Nodes by Kilo's own rule, and writes
// the annotations of Kilo's agents.
//
// The namespaces have no names. They exist while this process has them open or one of its children
// runs in them. So nothing remains after the process ends, and several meshes can run at the same
// time. The lab's own connections, for example to its API server, are sockets that this process
// opens in the namespaces. So there is no further network that could carry a pod's packets by
// mistake.
//
// The package needs root, iproute2, nftables and nsenter, and a kernel with VXLAN.
package mesh
