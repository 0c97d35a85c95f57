package programs

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

// progress says that a long build is alive: a line each 15 s, or on a
// terminal one line that counts the seconds.
type progress struct {
	out      io.Writer
	position string

	end, ended chan struct{}
}

func (p *progress) line(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

func (p *progress) start(name, version string) {
	what := fmt.Sprintf("%s building %s %s", p.position, name, version)
	every, prefix, suffix := 15*time.Second, "", "\n"
	if f, ok := p.out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		every, prefix, suffix = time.Second, "\r", ""
	}
	fmt.Fprintf(p.out, "%s …%s", what, suffix)
	p.end, p.ended = make(chan struct{}), make(chan struct{})
	begun := time.Now()
	go func() {
		defer close(p.ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-p.end:
				fmt.Fprint(p.out, prefix, what, " … ")
				return
			case <-tick.C:
				fmt.Fprintf(p.out, "%s%s … %s%s", prefix, what, seconds(time.Since(begun)), suffix)
			}
		}
	}()
}

func (p *progress) stop(format string, args ...any) {
	close(p.end)
	<-p.ended
	p.line(format, args...)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
