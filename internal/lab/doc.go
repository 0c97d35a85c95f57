// Package lab runs a whole cluster on one machine, for the demo, the tests and the benchmarks. It
// has etcd, kube-apiserver, kube-controller-manager, KWOK for the pods, kube-state-metrics,
// Prometheus and Alertmanager. All of them are the real programs, which package programs builds.
// Only the kubelets are simulated: the lab renews the nodes' leases and posts their status.
//
// The most important fault in a lab is a lost node. After [Lab.Break] the lab no longer renews the
// node's lease. KWOK runs and ends the pods, and reaches the API server through a Proxy, which then
// refuses the broken node's writes about pods. So kube-controller-manager itself finds the node
// lost. [Lab.Heal] brings the node back with another boot ID:
//
//	the lab ──lease, status──────╳ broken nodes
//	                             ▼
//	KWOK ──pods────▶ Proxy ──▶ kube-apiserver ◀── kube-controller-manager
//	                   ╳ of broken nodes               Ready=Unknown
//
// Everything listens on free loopback ports, so several labs can run at the same time. Every child
// process dies with the process that started it, even if that process is killed.
//
// The package works only on Linux, because it ends the children with PR_SET_PDEATHSIG.
package lab
