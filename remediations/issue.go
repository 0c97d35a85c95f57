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
