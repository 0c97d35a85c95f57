// Package programs builds the real programs of the lab and of the checks (etcd, kube-apiserver,
// Prometheus, golangci-lint, …) from their Go modules. The go.mod files under tools/ pin the
// versions.
//
// The package keeps the programs in a cache: $DRYDOCK_CACHE, or the folder drydock in the user's
// cache directory. The name of a program's folder has a hash of everything that determines the
// program. So a second run builds nothing, and a changed version causes a new build. Old folders
// stay, because another checkout may use them.
//
// The package works only on Linux. Processes that build at the same time wait for each other with
// flock(2).
package programs
