// Package real tests package history against the real Prometheus. It has tests only.
package real
