package fence

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"drydock.dev/drydock/internal/secretfile"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kit"
)

const (
	// maxOutput bounds each of an agent's two outputs, maxSecret one file with a secret.
	maxOutput, maxSecret = 64 << 10, 4 << 10
	// grace is how long a process that an agent left behind may hold its output.
	grace = time.Second
)

// answer is the result of one run.
type answer struct {
	code        int
	out, errors bounded
	err         error // why there is no whole answer
	began       bool  // the agent was started, and may have done what it was asked for
}

var errTooMuch = errors.New("the agent's output is too long")

// bounded is an output. It does not embed the buffer, whose ReadFrom has no bound.
type bounded struct{ text bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if b.text.Len()+len(p) > maxOutput {
		return 0, errTooMuch
	}
	return b.text.Write(p)
}

func (b *bounded) String() string { return b.text.String() }

// stamp is the time before a line. With it, each failure would be another Event.
var stamp = regexp.MustCompile(`^[0-9-]+ [0-9:,.]+ `)

// last returns the last line with a text: before it, Python writes warnings and traces.
func (b *bounded) last() (last string) {
	for line := range strings.Lines(b.String()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Please use '-h'") {
			last = stamp.ReplaceAllString(line, "")
		}
	}
	return last
}

// run runs the agent once. may is called right before the agent is started; nil: it may. The agent
// gets its options and secrets on its standard input, and neither arguments nor an environment.
func (c *Client) run(ctx context.Context, m *machine, action string, may func() error) (a answer) {
	done, err := c.turn(ctx, m)
	if err != nil {
		return answer{err: err}
	}
	defer done()
	input, err := m.input(action)
	if err = cmp.Or(err, ctx.Err()); err == nil && may != nil {
		kit.Preview(ctx, m.Program+" "+m.shown(action))
		err = may()
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return answer{err: err}
	}
	cmd := exec.CommandContext(ctx, m.Program)
	cmd.Env, cmd.Dir = []string{}, "/"
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &a.out, &a.errors
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// All processes of the agent are killed: ipmitool, say, would otherwise outlive it.
	kill := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel, cmd.WaitDelay = kill, grace
	if err := cmd.Start(); err != nil {
		return answer{err: &kit.Refusal{Why: kit.Setup, Text: "the agent cannot be started", Cause: err}}
	}
	a.began = true
	err = cmd.Wait()
	_ = kill()
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		a.err = ctx.Err()
	case err != nil && !errors.As(err, &ended) && !errors.Is(err, exec.ErrWaitDelay):
		a.err = err
	}
	a.code = cmd.ProcessState.ExitCode()
	return a
}

// turn waits until no other agent is at the machine's device: many accept one session.
func (c *Client) turn(ctx context.Context, m *machine) (done func(), err error) {
	first := make(chan struct{}, 1)
	device, _ := c.devices.LoadOrStore(m.Program+" "+m.options[m.address()], first)
	turns := device.(chan struct{}) //nolint:forcetypeassert // nothing else is stored
	select {
	case turns <- struct{}{}:
		return func() { <-turns }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// input is what the agent reads.
func (m *machine) input(action string) (string, error) {
	lines := []string{"action=" + action}
	for name, value := range m.options {
		lines = append(lines, name+"="+value)
	}
	for name, file := range m.SecretFiles {
		secret, err := secretfile.Token("secretFiles."+name, file, maxSecret)
		switch {
		case err != nil:
			return "", &kit.Refusal{Why: kit.Setup, Text: err.Error()}
		case strings.ContainsAny(secret, "\n\r\x00"):
			return "", kit.Refuse(kit.Setup, "secretFiles.%s %s has more than one line, which no agent can read", name, file)
		}
		m.secrets.AddPassword(m.options["username"], secret)
		lines = append(lines, name+"="+secret)
	}
	slices.Sort(lines[1:])
	return strings.Join(lines, "\n") + "\n", nil
}

// shown is the agent's input in one line, without the secrets.
func (m *machine) shown(action string) string {
	var words []string
	for name, value := range m.options {
		words = append(words, name+"="+value)
	}
	for name := range m.SecretFiles {
		words = append(words, name+"=[secret]")
	}
	slices.Sort(words)
	return "action=" + action + " " + strings.Join(words, " ")
}

// power reads the answer to status. The exit code and the text must agree: an agent that refuses
// its options, and one whose machine is off, may end with the same code. An agent that ignored an
// option may have asked about another machine.
func (a *answer) power() (on, known bool) {
	said := ""
	for line := range strings.Lines(a.out.String()) {
		if state, is := strings.CutPrefix(strings.TrimSpace(line), "Status: "); is {
			if said != "" && said != state {
				return false, false
			}
			said = state
		}
	}
	on = a.code == 0 && said == "ON"
	return on, a.err == nil && !strings.Contains(a.errors.String(), ignores) && (on || a.code == 2 && said == "OFF")
}

// says reports whether the agent ended well, and said so.
func (a *answer) says(success string) bool {
	return a.err == nil && a.code == 0 && slices.Contains(strings.Split(strings.TrimSpace(a.out.String()), "\n"), "Success: "+success)
}

// ignores is the warning of an agent that acts without an option that it does not know.
const ignores = "Ignoring unknown option"

// failures are sentences of the library that most agents use, which ends with code 1 for all of
// them, and what each means where one device serves all machines.
var failures = []struct {
	says string
	kit.Refusal
}{
	{ignores, kit.Refusal{Why: kit.Setup, Text: "the agent does not know one of its options"}},
	{"have to set login password", kit.Refusal{Why: kit.Setup, Text: "the agent has no password; check secretFiles"}},
	{"correct privileges", kit.Refusal{Why: kit.Account, Text: "the device refuses the account"}},
	{"Unable to connect/login", kit.Refusal{Why: kit.Passing, Again: remediations.AskMended, Text: "the device cannot be reached, or refuses the account"}}, // asked seldom, because devices lock accounts
	{"Connection lost", kit.Refusal{Why: kit.Passing, Text: "the connection to the device was lost"}},
	{"Connection timed out", kit.Refusal{Why: kit.Passing, Text: "the device did not answer in time"}},
}

// explain returns the meaning of an answer that is not a success.
func (c *Client) explain(m *machine, a *answer) *kit.Refusal {
	var ours *kit.Refusal
	e := kit.Refusal{Why: kit.Unreached, Again: remediations.AskMended, Text: fmt.Sprintf("the agent gave no usable answer (exit code %d)", a.code), Cause: m.secrets.Error(a.err)}
	switch {
	case errors.As(a.err, &ours):
		return ours
	case errors.Is(a.err, context.DeadlineExceeded), errors.Is(a.err, context.Canceled):
		e = kit.Refusal{Why: kit.Passing, Text: "the agent did not end within " + text.Duration(c.Timeout), Cause: a.err}
	case a.err != nil:
	default:
		for _, f := range failures {
			if strings.Contains(a.errors.String(), f.says) {
				e = f.Refusal
				break
			}
		}
		if said := m.secrets.Text(cmp.Or(a.errors.last(), a.out.last())); said != "" {
			e.Text += fmt.Sprintf(": %q", said)
		}
	}
	if m.own && (e.Why == kit.Passing || e.Why == kit.Account) {
		e.Why, e.Again = kit.Unreached, max(e.Again, map[bool]time.Duration{true: remediations.AskMended}[e.Why == kit.Account])
	}
	return &e
}
