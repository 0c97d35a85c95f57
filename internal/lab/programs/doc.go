// Package programs builds the real programs that the lab starts and that the
// checks run (etcd, kube-apiserver, Prometheus, golangci-lint, …) from their
// Go modules, at the versions that the go.mod files under tools/ pin.
//
// What is built is kept in a cache: $DRYDOCK_CACHE, or the user's cache
// directory plus "drydock". A program's folder there carries a hash of all
// that determines it, so that a second run builds nothing and a changed pin
// builds anew. Old folders are left alone: another checkout may use them.
//
// Linux only: processes that build at the same time wait for each other by
// flock(2).
package programs
