package webhook

import (
	"errors"

	"golang.org/x/time/rate"

	"drydock.dev/drydock/internal/text"
)

// Whoever reaches the port causes lines in the log, with any names in them. drydock_admission_total counts what these
// bounds leave out.
const (
	// linesPerSecond may be written on average, and linesAtOnce in a row.
	linesPerSecond, linesAtOnce = 2, 50
	// mostOfAName and mostOfAnError bound what a line repeats.
	mostOfAName, mostOfAnError = 253, 300
)

func newLines() *rate.Limiter { return rate.NewLimiter(linesPerSecond, linesAtOnce) }

// say writes a line about a request, if the log has room for one more. Nil: it is no error.
func (h *handler) say(err error, what, object, user, operation, why string) {
	if !h.lines.AllowN(h.Clock.Now(), 1) {
		return
	}
	object, user = text.Line(object, mostOfAName), text.Line(user, mostOfAName)
	operation, why = text.Line(operation, mostOfAName), text.Line(why, mostOfAName)
	if err != nil {
		h.Log.Error(errors.New(text.Line(err.Error(), mostOfAnError)), what, "object", object, "user", user, "operation", operation, "reason", why)
		return
	}
	h.Log.Info(what, "object", object, "user", user, "operation", operation, "reason", why)
}
