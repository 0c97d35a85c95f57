package lifecycle

import (
	"fmt"
	"strings"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/marks"
)

// sinceOwnRestart adds to the message about a shutdown taint that the repair's own restart may have
// left the machine off. The taint still holds the repair, because a person may have shut the
// machine down.
func sinceOwnRestart(c *Candidate, why string) string {
	r := c.Journal.Record
	if r == nil || r.Intent == nil || r.Intent.ID == "" || !strings.Contains(why, marks.ShutdownTaint) {
		return ""
	}
	last := remediations.LastDone(r)
	if !c.Config.Remediation(last.Name).Restarts {
		return ""
	}
	return fmt.Sprintf("; the taint came after Drydock's own %s, which may have left the machine off: start the machine, or cancel the repair and replace the machine yourself", last)
}
