// Package coverage says beforehand who repairs a node: which provider serves each step of its policies, where none or more than one
// does, and which other systems repair the same nodes.
package coverage
