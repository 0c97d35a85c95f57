// Package lab runs a whole cluster on one machine, for the demo, the tests
// and the benchmarks: etcd, kube-apiserver, kube-controller-manager, pods by
// KWOK, kube-state-metrics, Prometheus and Alertmanager. All of them are the
// real programs (package programs builds them); what is made up is only the
// kubelets, and those keep real leases.
//
// The fault that matters most here is a node that is lost. The lab renews each
// node's lease and posts its status. KWOK, which does the rest of a kubelet's
// work, runs and ends the pods, and reaches the API server through a Proxy.
// After [Lab.Break] the lab leaves the node's lease alone, and the proxy
// refuses what its kubelet would write of its pods, so that
// kube-controller-manager itself finds the node lost. [Lab.Heal] lets the node
// come back with another boot ID:
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
