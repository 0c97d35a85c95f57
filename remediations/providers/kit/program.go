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
	// grace is the wait for a child process that still has the output of an ended program open.
	grace = time.Second
	// maxSecret is in bytes.
	maxSecret = 4 << 10
)

// Program is a program that a provider runs. It gets no arguments and no environment variables,
// because other users of the machine could read secrets there.
type Program struct {
	Path string
	// Input is written to the program's standard input, as lines NAME=VALUE.
	Input map[string]string
	// SecretFiles are paths of files with further values for Input. Their contents are added to
	// Secrets, and are never shown.
	SecretFiles map[string]string
	Secrets     *redact.Keyring
	// Within limits the run. Output limits stdout and stderr, each in bytes.
	Within time.Duration
	Output int
}

// Ran is the result of a run: the exit code, the standard output, and the standard error.
type Ran struct {
	Code        int
	Out, Errors string
	// Err is why the program was not started, or why the result is incomplete.
	Err error
	// Began is true if the program was started. It may have done its work, even if the run failed.
	Began bool
}

// Run runs the program once, unless may, called right before the start, returns an error. If the
// program was not started, or did not end in time, Err is a Refusal. At the end, Run kills the
// process group, because a child process could still be running.
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
	case out.over || problems.over: // the signal for a closed output may have ended the program
		r.Err = errOutput
	case err != nil && !errors.As(err, &ended) && !errors.Is(err, exec.ErrWaitDelay):
		r.Err = err
	}
	return r
}

// shown describes the run for a person, without secrets.
func (p Program) input() (input, shown string, err error) {
	values := map[string]string{}
	maps.Copy(values, p.Input)
	for name, file := range p.SecretFiles {
		values[name], err = secretfile.Token("secretFiles."+name, file, maxSecret)
		switch {
		case err != nil:
			return "", "", err
		case strings.ContainsAny(values[name], "\n\r\x00"):
			return "", "", fmt.Errorf("secretFiles.%s %s has more than one line; write one line", name, file)
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

var errOutput = errors.New("the program's output is too long")

// output does not embed the bytes.Buffer, because the buffer's ReadFrom has no limit.
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
