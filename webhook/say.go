package webhook

import (
	"errors"

	"golang.org/x/time/rate"

	"drydock.dev/drydock/internal/text"
)

// These limits bound the log, because any client that reaches the port can cause log lines with any
// names in them. drydock_admission_total also counts the requests without a line.
const (
	// The average rate, and the largest burst.
	linesPerSecond, linesAtOnce = 2, 50
	// Texts in a line, in bytes.
	mostOfAName, mostOfAnError = 253, 300
)

func newLines() *rate.Limiter { return rate.NewLimiter(linesPerSecond, linesAtOnce) }

// The rate limit may drop the line. A nil err is not logged as an error.
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
