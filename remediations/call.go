package remediations

import "time"

// answer is what became of the call for the intent. A call that this process knows nothing of was made, or not, by one that
// is gone: it counts as issued. underWay: it may still be answered until the deadline.
func (c *Call) answer(intentID string, deadline, now time.Time) (outcome CallOutcome, why string, underWay bool) {
	switch {
	case c == nil || c.IntentID != intentID:
		return CallUnknown, "nobody knows the call's answer, since Drydock was restarted or lost its lead", false
	case c.Outcome != "":
		return c.Outcome, c.Why, false
	}
	return CallUnknown, "the call had no answer in time", now.Before(deadline)
}

// clockBehind is what is said of a repair whose last step is in this process's future.
const clockBehind = "this process's clock is behind the repair's last step; nothing it sees can be told from what was there before"

// Ahead says that the step was issued at a time which this process's clock has not reached: whatever it looks at now
// would seem to be from before, and looking again at once would never end.
func (i *Intent) Ahead(now time.Time) bool { return !now.After(i.At) }
