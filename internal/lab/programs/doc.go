// Package programs builds the real programs of the lab and of the checks (etcd, kube-apiserver,
// Prometheus, golangci-lint, …) from their Go modules. The go.mod files under tools/ pin the
// versions.
//
// It keeps the programs in a cache: $DRYDOCK_CACHE, or the user's cache directory plus "drydock".
// The name of a program's folder has a hash of everything that determines it. So a second run
// builds nothing, and a changed pin causes a new build. Old folders stay: another checkout may use
// them.
//
// Linux only: processes that build at the same time wait for each other by
// flock(2).
package programs
