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
	// witnessKept is how old a sign's reading may be to hold a repair. After that the sign counts
	// as not read.
	witnessKept = time.Minute
	// witnessAgain is when a sign that holds a repair is read again.
	witnessAgain = 30 * time.Second
)

// Signs returns the facts of the node that must show the fault before the step, for example its
// Ready condition. One that does (Ill) is enough. It returns nil if the step needs none. After the
// first step, a node that is not Ready counts as Ill for every policy, because most signs cannot be
// read from it.
func (c *Candidate) Signs() []signs.Sign {
	if c.Request != "" || c.Policy.Witness == nil || c.Policy.Witness.None {
		return nil
	}
	if c.Acted() {
		return c.Policy.Witness.Whole()
	}
	return c.Policy.Witness.Signs
}

// seen returns the Node with the number of GPUs that its machine had before the fault.
func (c *Candidate) seen() *corev1.Node {
	return remediations.WithGPUsBefore(c.Node, c.Journal.Record, c.Ledger.GPUsOf(c.Node))
}

// notWitnessed holds a repair if only the alert reports the fault, and the node itself does not. An
// unread sign does not hold the repair: it is read once no other guard holds the repair.
func notWitnessed(c *Candidate) *Finding {
	if c.Request == "" && c.Policy.Witness == nil {
		return &Finding{Fleetwide: true, Concern: remediations.Concern{Policy: c.Policy.Name}, Message: fmt.Sprintf("policy %s has no witness, and an alert alone repairs no node; write what shows the fault on the node itself, for example witness: [{ready: false}], or write witness: none to act on the alert alone", c.Policy.Name)}
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

// Unwitnessed reports whether signs must be read before the step, because no recent reading shows
// the fault.
func (c *Candidate) Unwitnessed() bool {
	asked := c.Signs()
	return len(asked) > 0 && !signs.Weigh(asked, c.seen(), c.Read, c.Now.Add(-remediations.LookFor), c.Now).Ill
}

// WitnessDue reports whether the oldest reading of a sign must be repeated.
func (c *Candidate) WitnessDue() bool {
	w := signs.Weigh(c.Signs(), c.seen(), c.Read, c.Now.Add(-witnessKept), c.Now)
	return !w.Oldest.IsZero() && c.Now.Sub(w.Oldest) >= witnessAgain
}
