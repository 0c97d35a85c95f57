package programs

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"drydock.dev/drydock/internal/cli"
)

// A line every 15 s, or on a terminal one line that is rewritten every second.
//
// Go compiles packages in the order of its list, so the position of the latest package shows the
// progress. Earlier packages that were not compiled were already in Go's cache. The measure is the
// size of the source.
type progress struct {
	out      io.Writer
	terminal bool
	title    string
	programs int

	end, ended chan struct{}

	mu    sync.Mutex
	known map[string]bool // packages whose size is already in total
	total float64
	done  float64
	first float64   // the progress when the first package was compiled
	since time.Time // when that was
	ready int       // the number of programs of finished modules
	now   string    // the folder where the current module's programs appear
}

func newProgress(out io.Writer, missing []target) *progress {
	return &progress{
		out: out, terminal: cli.Terminal(out), title: title(missing), programs: len(missing),
		end: make(chan struct{}), ended: make(chan struct{}), known: map[string]bool{},
	}
}

func (p *progress) expect(g *group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g.position = map[string]float64{}
	for _, s := range g.packages {
		if id := s.dir; !p.known[id] {
			p.known[id] = true
			p.total += s.size
			g.position[s.path] = p.total
		}
	}
	g.end = p.total
}

func (p *progress) building(folder string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = folder
}

func (p *progress) compiled(g *group, path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = max(p.done, g.position[path])
	if p.since.IsZero() {
		p.first, p.since = p.done, time.Now()
	}
}

func (p *progress) finished(g *group) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ready, p.now = p.ready+len(g.targets), ""
	p.done = max(p.done, g.end)
}

// String returns, for example, "41 % compiled, 3 of 9 programs ready, about 2 minutes to go".
func (p *progress) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return "fetching source"
	}
	ready := p.ready
	if p.now != "" {
		entries, _ := os.ReadDir(p.now)
		ready += len(entries)
	}
	return fmt.Sprintf("%2.0f %% compiled, %d of %d programs ready%s",
		100*p.done/max(p.total, 1), min(ready, p.programs), p.programs, cli.ToGo(p.done-p.first, p.total-p.done, time.Since(p.since)))
}

func (p *progress) start() {
	fmt.Fprintf(p.out, "building %s from source, once\n", p.title)
	every, prefix, suffix := 15*time.Second, "  ", "\n"
	if p.terminal {
		every, prefix, suffix = time.Second, "\r\033[K  ", ""
	}
	go func() {
		defer close(p.ended)
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-p.end:
				if p.terminal {
					fmt.Fprint(p.out, "\r\033[K")
				}
				return
			case <-tick.C:
				fmt.Fprint(p.out, prefix, p, suffix)
			}
		}
	}()
}

func (p *progress) stop(format string, args ...any) {
	close(p.end)
	<-p.ended
	fmt.Fprintf(p.out, format+"\n", args...)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
