package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"golang.org/x/term"
)

// Terminal reports whether the output is a terminal, where a program can rewrite a line.
func Terminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// ToGo returns a text like ", about 2 minutes to go". It returns "" if nothing is left, or if it is
// too early for an estimate. done and left are in the same unit. took is the time for done.
func ToGo(done, left float64, took time.Duration) string {
	if done <= 0 || left <= 0 || took < 10*time.Second {
		return ""
	}
	wait := time.Duration(left / done * float64(took))
	if wait < 90*time.Second {
		return fmt.Sprintf(", about %.0f seconds to go", 10*math.Ceil(wait.Seconds()/10))
	}
	return fmt.Sprintf(", about %.0f minutes to go", math.Ceil(wait.Minutes()))
}
