// Package lab runs a whole cluster on one machine, for the demo, the tests and the benchmarks:
// etcd, kube-apiserver, kube-controller-manager, pods by KWOK, kube-state-metrics, Prometheus and
// Alertmanager. All of them are the real programs, which package programs builds. Only the kubelets
// are simulated, and those renew real leases.
//
// The most important fault here is a lost node. The lab renews each node's lease and posts its
// status. KWOK does the rest of a kubelet's work: it runs and ends the pods, and reaches the API
// server through a Proxy. After [Lab.Break] the lab no longer renews the node's lease, and the
// proxy refuses its kubelet's writes about pods. So kube-controller-manager itself finds the node
// lost. [Lab.Heal] brings the node back with another boot ID:
//
//	the lab ──lease, status──────╳ broken nodes
//	                             ▼
//	KWOK ──pods────▶ Proxy ──▶ kube-apiserver ◀── kube-controller-manager
//	                   ╳ of broken nodes               Ready=Unknown
//
// Everything listens on free loopback ports, so labs run side by side. Every
// child dies with the process that started it, however that one ends.
//
// Linux only: the children's end hangs on PR_SET_PDEATHSIG.
package lab
