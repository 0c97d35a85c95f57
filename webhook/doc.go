// Package webhook is the place of the validating webhook: it will refuse manual repairs that collide with one under
// way, by calling remediations.InFlight and remediations.Owned. It has no rule of its own, and this version does not
// serve it yet.
package webhook
