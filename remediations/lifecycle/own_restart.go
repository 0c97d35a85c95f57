package lifecycle

import (
	"fmt"
	"strings"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/marks"
)

// sinceOwnRestart extends the message about a shutdown taint if Drydock itself restarted the
// machine last: the restart may have left the machine off. The taint came after that restart,
// because it holds every step before the call. The hold stays, because a person may have shut the
// machine down since. Empty: the last step was not a restart.
func sinceOwnRestart(c *Candidate, why string) string {
	r := c.Journal.Record
	if r == nil || r.Intent == nil || r.Intent.ID == "" || !strings.Contains(why, marks.ShutdownTaint) {
		return ""
	}
	last := remediations.LastDone(r)
	if !c.Config.Remediation(last.Name).Restarts {
		return ""
	}
	return fmt.Sprintf("; it is so since Drydock's own %s, which may have left the machine off: start the machine, or cancel the repair and replace the machine yourself", last)
}
