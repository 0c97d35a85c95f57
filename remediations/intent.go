package remediations

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// nextIntentID names the attempt that is about to be made. One that was given back is made again under a longer name, its
// own: a process that led before may remember that the call was withheld, and must not take the next call for that one.
func nextIntentID(r *Record, s StepRef, now time.Time) string {
	if r.Withheld() {
		return intentID(r, s) + "-" + strconv.FormatInt(now.UnixNano(), 36)
	}
	return intentID(r, s)
}

// intentID names one attempt of one step of one repair.
func intentID(r *Record, s StepRef) string { return fmt.Sprintf("%s-%d-%d", r.ID, s.Index, s.Attempt) }

// Of says that the intent is one for the attempt.
func (i *Intent) Of(r *Record, s StepRef) bool {
	id := intentID(r, s)
	return i != nil && (i.ID == id || strings.HasPrefix(i.ID, id+"-"))
}

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
