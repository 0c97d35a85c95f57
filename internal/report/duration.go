package report

import (
	"fmt"
	"strings"
	"time"
)

// Duration formats d to the second in the largest units, for example "2d3h", "6m12s" or "0s".
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	seconds := int64(d / time.Second)
	var b strings.Builder
	for _, unit := range []struct {
		name    string
		seconds int64
	}{{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}} {
		if n := seconds / unit.seconds; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, unit.name)
			seconds -= n * unit.seconds
		}
	}
	if b.Len() == 0 {
		return "0s"
	}
	return b.String()
}
