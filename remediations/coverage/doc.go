// Package coverage reports, before any repair, how nodes would be repaired. It finds the provider
// of each step on a node, steps that do not have exactly one provider, and other systems that
// repair the same nodes.
package coverage
