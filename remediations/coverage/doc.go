// Package coverage reports in advance who repairs a node. It finds the provider for each step of
// the node's policies, the steps without exactly one provider, and other systems that repair the
// same nodes.
package coverage
