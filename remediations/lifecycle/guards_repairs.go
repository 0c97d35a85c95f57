package lifecycle

import (
	"fmt"
	"slices"
	"time"

	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

func underRepair(r *remediations.Record) *Finding {
	return Because("another repair of this node is under way: %s by policy %s", r.ID, r.Policy)
}

// unreadable holds repairs because an unreadable record may describe a running repair.
func unreadable(c *Candidate) *Finding {
	if c.Journal.Malformed == nil {
		return nil
	}
	return Because("a record on the node cannot be read, so another repair of the node may be under way: %v; %s=true removes that record", c.Journal.Malformed, remediations.ResetKey)
}

func nodeUnderRepair(c *Candidate) *Finding {
	if f := unreadable(c); f != nil {
		return f
	}
	for _, r := range c.Journal.OtherRepairs {
		return underRepair(r)
	}
	if why := c.Fleet.LocationRepairOn(c.Node.Name); why != "" {
		return Because("%s", why)
	}
	return nil
}

// hostUnderRepair holds the repair of a sidecar or location while its node is under repair. Another
// target of that node holds it, too, unless both repairs may run together.
func hostUnderRepair(c *Candidate) *Finding {
	if f := unreadable(c); f != nil {
		return f
	}
	if r := c.Journal.Record; r != nil && r.Phase.InFlight() {
		return Because("the node is under repair: %s by policy %s", r.ID, r.Policy)
	}
	for _, r := range c.Journal.OtherRepairs {
		if !r.Shares() && r != c.record() {
			return underRepair(r)
		}
	}
	return nil
}

func beingReplaced(c *Candidate) *Finding {
	if o := c.Ledger.Replacing(c.Node); o != nil && o.Record.ID != c.Own {
		return Because("repair %s by policy %s is replacing this node's machine", o.Record.ID, o.Record.Policy)
	}
	return nil
}

func cooldown(c *Candidate) *Finding {
	if c.Acted() {
		return nil
	}
	e := c.lastRepair()
	if e == nil || !c.Now.Before(e.Ended.Add(c.Policy.Cooldown)) {
		return bootedLately(c)
	}
	return &Finding{Message: fmt.Sprintf("the last repair by policy %s ended at %s; its cooldown is %s", e.Policy, e.Ended.Format(time.RFC3339), text.Duration(c.Policy.Cooldown)), Until: e.Ended.Add(c.Policy.Cooldown)}
}

// bootedLately holds a step that restarts the machine if another policy restarted it recently.
// Programs that start at boot, above all GPU drivers, may need as long as the step waits for its
// proof (requirement S3-16). A requested step is not held, because the person knows of the last
// boot.
func bootedLately(c *Candidate) *Finding {
	if !c.Remediation().Restarts || c.Request != "" {
		return nil
	}
	wait := c.Config.WaitOf(c.Policy, c.Step)
	for _, e := range c.remembered() {
		if over := e.Ended.Add(wait); e.Restarted(c.Config) && remediations.KindOf(e.Target) == c.Kind && e.Policy != c.Policy.Name && c.Now.Before(over) {
			return c.restartedLately(e.Policy, e.Ended, wait)
		}
	}
	for _, e := range c.endsKnown() {
		if over := e.At.Add(wait); e.Restarted && e.Policy != c.Policy.Name && c.Now.Before(over) {
			return c.restartedLately(e.Policy, e.At, wait)
		}
	}
	return nil
}

func (c *Candidate) restartedLately(policy string, ended time.Time, wait time.Duration) *Finding {
	return &Finding{Message: fmt.Sprintf("a repair by policy %s restarted the machine and ended at %s; after a restart, a %s of policy %s waits %s", policy, ended.Format(time.RFC3339), c.Step.Name, c.Policy.Name, text.Duration(wait)), Until: ended.Add(wait)}
}

// endsKnown returns the machine's ended repairs from the ledger, for a Node that has lost its
// history.
func (c *Candidate) endsKnown() []ledger.End {
	return slices.DeleteFunc(c.Ledger.EndsOf(c.Node, c.Now, c.Config.Limits.RepairsWindow), func(e ledger.End) bool { return e.Alert != "" })
}

// lastRepair returns the policy's last repair that counts for the cooldown, from the Node's history
// or the ledger.
func (c *Candidate) lastRepair() (last *remediations.Entry) {
	for _, e := range c.remembered() {
		if e.Policy == c.Policy.Name && remediations.KindOf(e.Target) == c.Kind && c.counts(e) {
			last = &e
			break
		}
	}
	for _, e := range c.endsKnown() {
		if e.Policy == c.Policy.Name && (last == nil || e.At.After(last.Ended)) {
			last = &remediations.Entry{ID: e.Repair, Policy: e.Policy, Outcome: e.Outcome, Ended: e.At}
		}
	}
	return last
}

// remembered returns the machine's ended repairs. Without a spec.providerID, the same machine may
// have registered again as a new Node. So repairs of earlier Nodes with the same name count, if
// they ended within limits.repairsWindow.
func (c *Candidate) remembered() []remediations.Entry {
	if c.Node.Spec.ProviderID != "" {
		return c.Journal.History
	}
	out := slices.Clone(c.Journal.History)
	for _, e := range c.Journal.Past {
		if c.Now.Sub(e.Ended) < c.Config.Limits.RepairsWindow {
			out = append(out, e)
		}
	}
	return out
}

// counts reports whether the ended repair counts for cooldowns and limits. Repairs that were only
// observed count for a policy in mode observe, so that it reports what would really happen. They
// never hold a policy in mode enforce.
func (c *Candidate) counts(e remediations.Entry) bool {
	return len(e.Steps) > 0 || (e.Outcome == remediations.OutcomeObserved && c.Policy.Mode == remediations.ModeObserve)
}

// begun counts the disruptive repairs within limits.repairsWindow, and returns when the oldest
// began. It merges the ledger and the Node's history, because one of them may have been restored
// from an old backup.
func (c *Candidate) begun() (count int, oldest time.Time) {
	window := c.Config.Limits.RepairsWindow
	all := c.Ledger.Begun(ledger.Machine(c.Node), c.Own, c.Now, window)
	for _, e := range c.remembered() {
		at := e.Began
		if e.Would != nil {
			at = e.Ended
		}
		known := slices.ContainsFunc(all, func(b ledger.Begun) bool { return b.Repair == e.ID })
		if !known && !e.Reset && c.disrupted(e) && remediations.KindOf(e.Target) == c.Kind && c.counts(e) && c.Now.Sub(at) < window {
			all = append(all, ledger.Begun{Repair: e.ID, At: at})
		}
	}
	for _, b := range all {
		if oldest.IsZero() || b.At.Before(oldest) {
			oldest = b.At
		}
	}
	return len(all), oldest
}

// disrupted also counts a step that was only observed and would have been disruptive.
func (c *Candidate) disrupted(e remediations.Entry) bool {
	return e.Would != nil && c.Config.Remediation(e.Would.Step.Name).Disruptive ||
		slices.ContainsFunc(e.Steps, func(a remediations.Attempt) bool { return c.Config.Remediation(a.Name).Disruptive })
}

func repairsSpent(c *Candidate) *Finding {
	l := c.Config.Limits
	begun, oldest := c.begun()
	if begun < l.RepairsPerNode {
		return nil
	}
	return &Finding{
		Message: fmt.Sprintf("%s began on this machine within %s (limits.repairsPerNode: %d); a person must check the machine", text.Count(begun, "repair"), text.Duration(l.RepairsWindow), l.RepairsPerNode),
		Until:   oldest.Add(l.RepairsWindow),
	}
}

func policyFailing(c *Candidate) *Finding {
	message := ""
	if why := c.Ledger.Status.Stopped[c.Policy.Name]; why != "" {
		message = fmt.Sprintf("policy %s is stopped, since the provider refuses its calls: %s; once that is fixed: kubectl drydock reset --policy %[1]s", c.Policy.Name, text.Line(why, 200))
	} else if c.Ledger.Failing(c.Policy.Name) {
		message = fmt.Sprintf("policy %s is stopped: its last %d repairs failed; find the cause, then: kubectl drydock reset --policy %[1]s", c.Policy.Name, ledger.FailingAfter)
	}
	if message == "" {
		return nil
	}
	return &Finding{Message: message, Concern: remediations.Concern{Policy: c.Policy.Name}}
}
