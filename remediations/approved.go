package remediations

import (
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// Approved returns the digest of what a person approves: the plan and the Node's machine. Empty:
// the policy needs no approval.
func (p *Policy) Approved(n *corev1.Node) string {
	if !p.Approval {
		return ""
	}
	sum := sha256.Sum256([]byte(EncodeJSON(p.Plan) + MachineOf(n)))
	return fmt.Sprintf("%x", sum[:6])
}

// AsksFor reports whether the record waits for the approval of the policy's current plan on the
// Node's machine. A record of another plan is replaced by a record with a new id, so that an
// approval of the old plan does not approve the new one.
func (r *Record) AsksFor(p *Policy, n *corev1.Node) bool {
	return !p.Approval || r.Plan == "" || r.Plan == p.Approved(n)
}
