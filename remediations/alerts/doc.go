// Package alerts merges the answers of the Alertmanagers about an alert: whether it fires, whether
// a silence, an inhibition or a time interval holds it, and whether the answers can be trusted. The
// package sends no requests itself. Its input is a Snapshot of the answers.
package alerts
