// Package cluster is a Kubernetes cluster with real kubelets on one machine: three hosts with
// systemd, containerd, kubelet and kube-proxy, and Drydock's pods from its chart.
//
//	this process's network:  etcd, kube-apiserver, kube-controller-manager, kube-scheduler,
//	198.18.n.1               kube-proxy, kube-state-metrics, Prometheus, Alertmanager
//	     │ bridge
//	     ├── worker-1   sshd, containerd, kubelet, kube-proxy; pods 10.66.1.0/24
//	     ├── worker-2   …                                           10.66.2.0/24
//	     └── worker-3   …                                           10.66.3.0/24
//
// The hosts are those of package hosts, and everything beside them is a lab of package lab. The
// process moves into a network of its own first (Apart), so that kube-proxy does not change the
// machine's packet filter and no port of the machine is taken. When the process ends, also when it
// is killed, the kernel ends all of it.
//
// The hosts share the machine's kernel. They have no capability to set its clock, to load modules
// or to read its log, and see its settings read-only, except those of their own network. This
// protects against mistakes, not against an attacker.
//
// It needs root, version 1 of control groups, and what package hosts needs.
package cluster
