package fence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"drydock.dev/drydock/internal/secretfile"
	"drydock.dev/drydock/internal/text"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kit"
)

// maxOutput bounds each of an agent's two outputs, maxSecret one file with a secret.
const maxOutput, maxSecret = 64 << 10, 4 << 10

// answer is the result of one run.
type answer struct {
	code        int
	out, errors string
	err         error // why there is no whole answer
	began       bool  // the agent was started, and may have done what it was asked for
}

// stamp is the time before a line. With it, each failure would be another Event.
var stamp = regexp.MustCompile(`^[0-9-]+ [0-9:,.]+ `)

// last returns the last line with a text: before it, Python writes warnings and traces.
func last(of string) (last string) {
	for line := range strings.Lines(of) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Please use '-h'") {
			last = stamp.ReplaceAllString(line, "")
		}
	}
	return last
}

// run runs the agent once. may is called right before the agent is started; nil: it may. The agent
// gets its options and secrets on its standard input.
func (c *Client) run(ctx context.Context, m *machine, action string, may func() error) answer {
	done, err := c.turn(ctx, m)
	if err != nil {
		return answer{err: err}
	}
	defer done()
	input, shown, err := m.input(action)
	if err != nil {
		return answer{err: err}
	}
	ran := kit.Program{Path: m.Program, Input: input, Shown: m.Program + " " + shown, Within: c.Timeout, Output: maxOutput}.Run(ctx, may)
	if errors.Is(ran.Err, kit.ErrNotStarted) {
		ran.Err = &kit.Refusal{Why: kit.Setup, Text: "the agent cannot be started", Cause: ran.Err}
	}
	return answer{ran.Code, ran.Out, ran.Errors, ran.Err, ran.Began}
}

// turn waits until no other agent is at the machine's device: many accept one session.
func (c *Client) turn(ctx context.Context, m *machine) (done func(), err error) {
	device, _ := c.devices.LoadOrStore(m.Program+" "+m.options[m.address()], semaphore.NewWeighted(1))
	turn := device.(*semaphore.Weighted) //nolint:forcetypeassert // nothing else is stored
	return func() { turn.Release(1) }, turn.Acquire(ctx, 1)
}

// input is what the agent reads. shown is the same in one line, without the secrets.
func (m *machine) input(action string) (input, shown string, err error) {
	lines := []string{"action=" + action}
	for name, value := range m.options {
		lines = append(lines, name+"="+value)
	}
	hidden := slices.Clone(lines)
	for name, file := range m.SecretFiles {
		secret, err := secretfile.Token("secretFiles."+name, file, maxSecret)
		switch {
		case err != nil:
			return "", "", &kit.Refusal{Why: kit.Setup, Text: err.Error()}
		case strings.ContainsAny(secret, "\n\r\x00"):
			return "", "", kit.Refuse(kit.Setup, "secretFiles.%s %s has more than one line, which no agent can read", name, file)
		}
		m.secrets.AddPassword(m.options["username"], secret)
		lines, hidden = append(lines, name+"="+secret), append(hidden, name+"=[secret]")
	}
	slices.Sort(lines[1:])
	slices.Sort(hidden[1:])
	return strings.Join(lines, "\n") + "\n", strings.Join(hidden, " "), nil
}

// power reads the answer to status. The exit code and the text must agree: an agent that refuses
// its options, and one whose machine is off, may end with the same code. An agent that ignored an
// option may have asked about another machine.
func (a *answer) power() (on, known bool) {
	said := ""
	for line := range strings.Lines(a.out) {
		if state, is := strings.CutPrefix(strings.TrimSpace(line), "Status: "); is {
			if said != "" && said != state {
				return false, false
			}
			said = state
		}
	}
	on = a.code == 0 && said == "ON"
	return on, a.err == nil && !strings.Contains(a.errors, ignores) && (on || a.code == 2 && said == "OFF")
}

// says reports whether the agent ended well, and said so.
func (a *answer) says(success string) bool {
	return a.err == nil && a.code == 0 && slices.Contains(strings.Split(strings.TrimSpace(a.out), "\n"), "Success: "+success)
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
			if strings.Contains(a.errors, f.says) {
				e = f.Refusal
				break
			}
		}
		if said := m.secrets.Text(cmp.Or(last(a.errors), last(a.out))); said != "" {
			e.Text += fmt.Sprintf(": %q", said)
		}
	}
	if m.own && (e.Why == kit.Passing || e.Why == kit.Account) {
		e.Why, e.Again = kit.Unreached, max(e.Again, map[bool]time.Duration{true: remediations.AskMended}[e.Why == kit.Account])
	}
	return &e
}
