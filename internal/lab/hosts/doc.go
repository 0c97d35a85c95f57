// Package hosts runs a cluster of hosts on one machine, for tests of what Drydock does to a host
// over SSH. Each host is a Debian system with systemd as its first process, sshd and a journal. It
// is booted by systemd-nspawn.
//
//	Drydock, Prometheus, …        198.18.n.0/24
//	     │ ssh, https ──────┬──────────┬──────────┬──────────┬──────────┐
//	                      cp-1       cp-2       cp-3     worker-1   worker-2
//	 kubelet.service:     etcd ═════ etcd ═════ etcd        lease      lease
//	                    apiserver  apiserver  apiserver       └──▶ an API server that answers
//
// kubelet.service runs a simulated kubelet (package kubelet beside this one). It registers the
// node, and renews its lease and its Ready condition. On the three hosts of the control plane it
// also runs, as static pods, a member of an etcd cluster and the lab's kube-apiserver. They belong
// to its unit: if the unit is stopped or hangs, the API server of that host is gone, and a restart
// of the unit brings it back.
//
// When a host reboots (systemctl reboot), it is started again with another boot ID. The boot ID
// comes from systemd-nspawn and not from the kernel: the kernel stays the same, and there is no
// /proc/sysrq-trigger. A host that powers off stays off.
//
// A lab uses the cluster in place of its own etcd and API server:
//
//	h, err := hosts.New(ctx, hosts.Options{})
//	l, err := lab.Start(ctx, lab.Options{APIServers: h.StartCluster})
//
// With Options.Pods the hosts have no simulated kubelet, but can run a real one with its pods.
// Package cluster does that. Such hosts need version 1 of control groups.
//
// The tree of Debian's packages is built once, into the cache of package programs. Each host is an
// overlay over that tree, in memory. The mounts and the network are in namespaces without a name.
// Each host is in a process namespace, whose first process the kernel kills when this process ends.
// So nothing remains after this process ends, except empty folders of control groups, which the
// next cluster removes.
//
// The package needs root, systemd-nspawn, iproute2, overlayfs and version 2 of control groups
// (version 1 may be present, too). The first run needs debootstrap and a mirror of Debian.
package hosts
