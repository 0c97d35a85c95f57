// Package alerts merges the answers of the Alertmanagers about an alert: whether it fires, whether
// a silence, an inhibition or a time interval holds it, and whether the answers can be trusted. It
// sends no requests: a snapshot of the answers comes from outside.
package alerts
