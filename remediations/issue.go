package remediations

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// issue puts the candidate's step on record as an intent, which comes before its side effect.
func (s *State) issue(c *candidate, pending *Record) Decision {
	n, now, once := s.Node, c.now, c.remediation().Once
	r := pending.clone()
	id, taken := nextIntentID(r, c.step, now), r.taken(c.step)
	r.Phase, r.Step, r.Hold, r.Note = Acting, c.step, nil, ""
	r.Since, r.Deadline = at(now), at(now.Add(actingFor))
	r.Also = s.also(r)
	// Judged by the intent: a plan may repeat a step, and each is an attempt of its own. A drain that goes on is none.
	if !r.Intent.of(r, c.step) {
		r.Done = append(r.Done, c.step.String())
	}
	r.Intent = &Intent{
		ID: id, At: at(now),
		BootID: n.Status.NodeInfo.BootID, UID: string(n.UID), ProviderID: n.Spec.ProviderID, Before: s.Survey.before(c.ask()),
		SpentSeconds: int(taken.Seconds()),
	}
	if v := s.surveyOf(c); v.Evidence != "" {
		r.Evidence = evidence(v.Evidence)
	}
	d := Decision{Verb: Issue, Policy: c.policy, Record: r, Signs: c.signs()}
	if !once {
		r.Deadline = at(now.Add(c.policy.Plan[c.step.Index].Timeout - taken))
		if !n.Spec.Unschedulable {
			d.Cordon = true
			r.Undo = append(r.Undo, Undo{Kind: UndoCordon, At: at(now)})
		}
	}
	attempt := ""
	if once {
		attempt = fmt.Sprintf(" (attempt %d)", c.step.Attempt)
	}
	d.Message = fmt.Sprintf("%s %s%s%s %s", c.remediation().Verb, n.Name, c.part(), attempt, c.by())
	return d
}

// nextIntentID names the attempt that is about to be made. One that was given back is made again under a longer name, its
// own: a process that led before may remember that the call was withheld, and must not take the next call for that one.
func nextIntentID(r *Record, s StepRef, now time.Time) string {
	if r.withheld() {
		return intentID(r, s) + "-" + strconv.FormatInt(now.UnixNano(), 36)
	}
	return intentID(r, s)
}

// intentID names one attempt of one step of one repair.
func intentID(r *Record, s StepRef) string { return fmt.Sprintf("%s-%d-%d", r.ID, s.Index, s.Attempt) }

// of says that the intent is one for the attempt.
func (i *Intent) of(r *Record, s StepRef) bool {
	id := intentID(r, s)
	return i != nil && (i.ID == id || strings.HasPrefix(i.ID, id+"-"))
}
