// Package alerts says what the Alertmanagers together say of an alert: whether it fires, whether a silence, an inhibition or a time
// interval holds it, and whether what they say can be trusted. It asks nobody: a snapshot of their answers comes in from outside.
package alerts
