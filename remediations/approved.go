package remediations

import (
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Approved returns the digest of what a person approves: the policy's plan and the Node's machine.
// It returns "" if the policy needs no approval.
func (p *Policy) Approved(n *corev1.Node) string {
	if !p.Approval {
		return ""
	}
	sum := sha256.Sum256([]byte(EncodeJSON(p.Plan) + MachineOf(n)))
	return fmt.Sprintf("%x", sum[:6])
}

// AsksFor reports whether an approval of this record also approves the policy's current plan on the
// Node's machine. An approval of an old plan, or for another machine, does not count.
func (r *Record) AsksFor(p *Policy, n *corev1.Node) bool {
	return !p.Approval || r.Plan == "" || r.Plan == p.Approved(n)
}
