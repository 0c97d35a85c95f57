package kit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// grace is how long a process that a program left behind may hold its output.
const grace = time.Second

// Program is a program that a provider runs. It gets neither arguments nor an environment: other
// users of the machine could read secrets there.
type Program struct {
	Path string
	// Input is its standard input, and Shown what a preview shows of the run, without secrets.
	Input, Shown string
	// Within bounds the run, and Output each of its two outputs, in bytes.
	Within time.Duration
	Output int
}

// Ran is the result of a run.
type Ran struct {
	Code        int
	Out, Errors string
	// Err is why there is no whole result.
	Err error
	// Began: the program was started, and may have done its work, however it ended.
	Began bool
}

// Run runs the program once. may is called right before the start; nil: the start needs no check.
// At the end all processes of the program are killed, because a helper would otherwise outlive it.
func (p Program) Run(ctx context.Context, may func() error) (r Ran) {
	err := ctx.Err()
	if err == nil && may != nil {
		Preview(ctx, p.Shown)
		err = may()
	}
	ctx, cancel := context.WithTimeout(ctx, p.Within)
	defer cancel()
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return Ran{Err: err}
	}
	out, problems := output{most: p.Output}, output{most: p.Output}
	cmd := exec.CommandContext(ctx, p.Path)
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(p.Input), &out, &problems
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = kill, grace
	if err := cmd.Start(); err != nil {
		return Ran{Err: fmt.Errorf("%w: %w", ErrNotStarted, err)}
	}
	err = cmd.Wait()
	_ = kill()
	r = Ran{Code: cmd.ProcessState.ExitCode(), Out: out.text.String(), Errors: problems.text.String(), Began: true}
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		r.Err = ctx.Err()
	case out.over || problems.over: // it may have ended by the signal for a closed output
		r.Err = errOutput
	case err != nil && !errors.As(err, &ended) && !errors.Is(err, exec.ErrWaitDelay):
		r.Err = err
	}
	return r
}

// ErrNotStarted says that the operating system did not start the program.
var ErrNotStarted = errors.New("it cannot be started")

var errOutput = errors.New("its output is too long")

// output is one output. It does not embed the buffer, whose ReadFrom has no bound.
type output struct {
	text bytes.Buffer
	most int
	over bool
}

func (o *output) Write(p []byte) (int, error) {
	if o.over = o.over || o.text.Len()+len(p) > o.most; o.over {
		return 0, errOutput
	}
	return o.text.Write(p)
}
