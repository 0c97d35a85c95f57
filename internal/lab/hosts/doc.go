// Package hosts is a cluster of real hosts on one machine, for tests of what Drydock does to a host
// over SSH. Each host is a Debian with systemd as its first process, sshd and a journal, booted by
// systemd-nspawn.
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
// to its unit: if the unit is stopped or hangs, that host's API server is gone, and a restart
// brings it back.
//
// A host that reboots (systemctl reboot) is started again with another boot ID, which is
// systemd-nspawn's and not the kernel's: the kernel stays the same, and there is no
// /proc/sysrq-trigger. A host that powers off stays off.
//
// A lab uses the cluster in place of its own etcd and API server:
//
//	h, err := hosts.New(ctx, hosts.Options{})
//	l, err := lab.Start(ctx, lab.Options{APIServers: h.StartCluster})
//
// With Options.Pods the hosts have no simulated kubelet, and are able to run a real one with its
// pods: package cluster does. They need version 1 of control groups.
//
// The tree of Debian's packages is built once into the cache of package programs. Each host is an
// overlay of the tree in memory. The mounts and the network are in namespaces without a name. A
// host is in a process namespace, and the kernel kills its first process with this one. So nothing
// remains after the process ends, except empty folders of control groups, which the next cluster
// removes.
//
// It needs root, systemd-nspawn, iproute2, overlayfs and version 2 of control groups (version 1 may
// be present, too). The first run needs debootstrap and a mirror of Debian.
package hosts
