package kit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/internal/secretfile"
	"drydock.dev/drydock/internal/text"
)

const (
	// grace is how long a process that a program left behind may hold its output.
	grace = time.Second
	// maxSecret bounds one file with a secret.
	maxSecret = 4 << 10
)

// Program is a program that a provider runs. It gets neither arguments nor an environment: other
// users of the machine could read secrets there.
type Program struct {
	Path string
	// Input are the names and values that it reads from its standard input, each on a line.
	Input map[string]string
	// SecretFiles are the files of further values, by name. Nothing shows these values, and Secrets
	// learns them before the start.
	SecretFiles map[string]string
	Secrets     *redact.Keyring
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
// If it was not started, or did not end in time, Err is a Refusal.
// At the end all processes of the program are killed, because a helper would otherwise outlive it.
func (p Program) Run(ctx context.Context, may func() error) (r Ran) {
	input, shown, err := p.input()
	if err != nil {
		return Ran{Err: Refuse(Setup, "%s", err)}
	}
	if err = ctx.Err(); err == nil && may != nil {
		Preview(ctx, shown)
		err = may()
	}
	ctx, cancel := context.WithTimeout(ctx, p.Within)
	defer cancel()
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return Ran{Err: &Refusal{Why: Passing, Text: p.Path + " was not started", Cause: err}}
	}
	out, problems := output{most: p.Output}, output{most: p.Output}
	cmd := exec.CommandContext(ctx, p.Path)
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &out, &problems
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = kill, grace
	if err := cmd.Start(); err != nil {
		return Ran{Err: &Refusal{Why: Setup, Text: p.Path + " cannot be started", Cause: err}}
	}
	err = cmd.Wait()
	_ = kill()
	r = Ran{Code: cmd.ProcessState.ExitCode(), Out: out.text.String(), Errors: problems.text.String(), Began: true}
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		r.Err = &Refusal{Why: Passing, Text: p.Path + " did not end within " + text.Duration(p.Within), Cause: ctx.Err()}
	case out.over || problems.over: // it may have ended by the signal for a closed output
		r.Err = errOutput
	case err != nil && !errors.As(err, &ended) && !errors.Is(err, exec.ErrWaitDelay):
		r.Err = err
	}
	return r
}

// input returns what the program reads, and what a preview shows of the run.
func (p Program) input() (input, shown string, err error) {
	values := map[string]string{}
	maps.Copy(values, p.Input)
	for name, file := range p.SecretFiles {
		values[name], err = secretfile.Token("secretFiles."+name, file, maxSecret)
		switch {
		case err != nil:
			return "", "", err
		case strings.ContainsAny(values[name], "\n\r\x00"):
			return "", "", fmt.Errorf("secretFiles.%s %s has more than one line, which no program can read", name, file)
		}
		p.Secrets.AddPassword(p.Input["username"], values[name])
	}
	shown = p.Path
	for _, name := range slices.Sorted(maps.Keys(values)) {
		input += name + "=" + values[name] + "\n"
		if _, secret := p.SecretFiles[name]; secret {
			values[name] = "[secret]"
		}
		shown += " " + name + "=" + values[name]
	}
	return input, shown, nil
}

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
