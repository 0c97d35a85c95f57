package lifecycle

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/signs"
)

const (
	// witnessKept is how long a sign's answer still holds a repair. An older answer counts as not
	// read.
	witnessKept = time.Minute
	// witnessAgain is how soon a sign is read again while it holds a repair.
	witnessAgain = 30 * time.Second
)

// Signs returns the signs for the candidate's step: at least one must be Ill before the step; nil:
// no sign is read. After a step of this repair, a node that is not Ready is ill for every policy:
// while a node is away, most signs give no answer.
func (c *Candidate) Signs() []signs.Sign {
	if c.Request != "" || c.Policy.Witness == nil || c.Policy.Witness.None {
		return nil
	}
	if c.Acted() {
		return c.Policy.Witness.Whole()
	}
	return c.Policy.Witness.Signs
}

// seen returns the Node as the witness sees it: with the GPUs that its machine had before the
// fault.
func (c *Candidate) seen() *corev1.Node {
	return remediations.WithGPUsBefore(c.Node, c.Journal.Record, c.Ledger.GPUsOf(c.Node))
}

// notWitnessed holds a repair that only an alert supports. Signs that were not read yet are read
// once no other guard holds.
func notWitnessed(c *Candidate) *Finding {
	if c.Request == "" && c.Policy.Witness == nil {
		return &Finding{Fleetwide: true, Message: fmt.Sprintf("policy %s has no witness, and an alert alone repairs no node; write what shows the fault on the node itself, for example witness: [{ready: false}], or write witness: none to act on the alert alone", c.Policy.Name)}
	}
	asked := c.Signs()
	if len(asked) == 0 {
		return nil
	}
	w := signs.Weigh(asked, c.seen(), c.Read, c.Now.Add(-witnessKept), c.Now)
	if w.Ill || w.Unread {
		return nil
	}
	f := Because("the alert says that the node is ill, the witness of policy %s does not: %s", c.Policy.Name, strings.Join(w.Saw, "; "))
	if !w.Oldest.IsZero() {
		f.Until = w.Oldest.Add(witnessAgain)
	}
	return f
}

// Unwitnessed reports whether the witness must be read before the step: no fresh sign is Ill.
func (c *Candidate) Unwitnessed() bool {
	asked := c.Signs()
	return len(asked) > 0 && !signs.Weigh(asked, c.seen(), c.Read, c.Now.Add(-remediations.LookFor), c.Now).Ill
}

// WitnessDue reports whether the signs that hold the repair are so old that they must be read
// again.
func (c *Candidate) WitnessDue() bool {
	w := signs.Weigh(c.Signs(), c.seen(), c.Read, c.Now.Add(-witnessKept), c.Now)
	return !w.Oldest.IsZero() && c.Now.Sub(w.Oldest) >= witnessAgain
}
