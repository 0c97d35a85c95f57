// Package mesh is a cluster's network on one machine, for tests of Kilo's behaviour and Drydock's
// reaction to it. Every node is a network namespace, every pod another one, and real packets go
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
// Cilium's and flannel's. Between locations, the leaders relay through a tunnel. It is a second
// VXLAN on WireGuard's port, because not every kernel has WireGuard. The wire carries everything:
// it is a router with a network for each location. The wire is IPv4; pods have IPv4 addresses, or
// IPv6 addresses with NewIPv6.
//
// [Kilo] simulates Kilo's agents. It decides which node leads, and so every route between pods: it
// follows the annotations of the lab's Nodes by Kilo's own rule, and writes those of Kilo's agents.
//
// The namespaces have no names: they exist while this process has them open or one of its children
// runs in them. So nothing remains after the process ends, and meshes can run side by side. The
// lab's own connections, for example to its API server, are sockets that this process opened in the
// namespaces. They need no network that could carry a pod's packets by mistake.
//
// It needs root, iproute2, nftables and nsenter, and a kernel with VXLAN.
package mesh
