// Package hosts is a cluster of real hosts on one machine, for the tests of what Drydock does to a host over SSH: each is
// a Debian with systemd as its first process, sshd and a journal, booted by systemd-nspawn.
//
//	Drydock, Prometheus, …        198.18.n.0/24
//	     │ ssh, https ──────┬──────────┬──────────┬──────────┬──────────┐
//	                      cp-1       cp-2       cp-3     worker-1   worker-2
//	 kubelet.service:     etcd ═════ etcd ═════ etcd        lease      lease
//	                    apiserver  apiserver  apiserver       └──▶ an API server that answers
//
// kubelet.service runs a stand-in for the kubelet (package kubelet beside this one): it registers the node, renews its
// lease and its Ready condition, and on the three hosts of the control plane keeps a member of an etcd cluster and the
// lab's kube-apiserver running, as static pods. They are in its unit: where it is stopped or hangs, that host's API server
// is gone, and a restart brings it back.
//
// A host that reboots (systemctl reboot) is turned on again and has another boot ID, which is systemd-nspawn's and not the kernel's: the
// kernel below stays, and there is no /proc/sysrq-trigger. One that powers off stays off.
//
// A lab uses the cluster in place of its own etcd and API server:
//
//	h, err := hosts.New(ctx, hosts.Options{})
//	l, err := lab.Start(ctx, lab.Options{APIServers: h.StartCluster})
//
// The tree of Debian's packages is built once into the cache of package programs; each host is an overlay of it in
// memory. The mounts and the network are in namespaces without a name, and a host is in a process namespace whose first
// process the kernel kills with this one: nothing is left over however the process ends, but the empty folders of the
// control groups, which the next cluster removes.
//
// It needs root, systemd-nspawn, iproute2, overlayfs and version 2 of control groups (beside version 1 will do), and
// debootstrap with a mirror of Debian's the first time.
package hosts
