package fence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/semaphore"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/providers/kit"
)

// stamp matches the time at the beginning of a line of an agent's output. The time is removed,
// because otherwise each failure would have a different text, and so a separate Event.
var stamp = regexp.MustCompile(`^[0-9-]+ [0-9:,.]+ `)

// last returns the last line of the output that is not empty. Python writes warnings and traces
// before the line with the error.
func last(of string) (last string) {
	for line := range strings.Lines(of) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Please use '-h'") {
			last = stamp.ReplaceAllString(line, "")
		}
	}
	return last
}

// run runs the agent once. Agents for the same power device run one after the other, because many
// devices accept only one session. Right before the start, run calls the function may. If may
// returns an error, the agent is not started. If may is nil, run checks nothing. The agent gets its
// options and secrets on its standard input.
func (c *Client) run(ctx context.Context, m *machine, action string, may func() error) kit.Ran {
	device, _ := c.devices.LoadOrStore(m.device(), semaphore.NewWeighted(1))
	turn := device.(*semaphore.Weighted) //nolint:forcetypeassert // nothing else is stored
	if err := turn.Acquire(ctx, 1); err != nil {
		return kit.Ran{Err: kit.Refuse(kit.Passing, "another agent is still using the device: %v", err)}
	}
	defer turn.Release(1)
	input := maps.Clone(m.options)
	input["action"] = action
	return kit.Program{Path: m.Program, Input: input, SecretFiles: m.SecretFiles, Secrets: &m.secrets, Within: c.Timeout, Output: 64 << 10}.Run(ctx, may)
}

// power returns the power state from the output of the action status: on, off, or "" for unknown.
// The exit code and the text must agree, because an agent that refuses its options may have the
// exit code for "off". The state is also unknown if the agent ignored an option: it may have read
// another machine.
func power(a kit.Ran) string {
	said := slices.CompactFunc(statusLine.FindAllStringSubmatch(a.Out, -1), func(x, y []string) bool { return x[1] == y[1] })
	switch {
	case len(said) != 1, a.Err != nil, strings.Contains(a.Errors, ignores):
	case a.Code == 0 && said[0][1] == "ON":
		return on
	case a.Code == 2 && said[0][1] == "OFF":
		return off
	}
	return ""
}

// The states of a machine's power.
const on, off = "on", "off"

var statusLine = regexp.MustCompile(`(?m)^\s*Status: (.*?)\s*$`)

// says reports whether the agent exited with code 0, and printed a line with "Success: " and the
// text success.
func says(a kit.Ran, success string) bool {
	return a.Err == nil && a.Code == 0 && slices.Contains(strings.Split(strings.TrimSpace(a.Out), "\n"), "Success: "+success)
}

// ignores is the warning of an agent that does not know an option, and acts without it.
const ignores = "Ignoring unknown option"

// failures has error messages of the library that most agents use. The exit code does not
// distinguish them: it is always 1. The Refusal of each message is for a power device that serves
// all machines.
var failures = []struct {
	says string
	kit.Refusal
}{
	{ignores, kit.Refusal{Why: kit.Setup, Text: "the agent does not know one of its options"}},
	{"have to set login password", kit.Refusal{Why: kit.Setup, Text: "the agent has no password; check secretFiles"}},
	{"correct privileges", kit.Refusal{Why: kit.Account, Text: "the device refuses the account"}},
	{"Unable to connect/login", kit.Refusal{Why: kit.Passing, Again: remediations.AskMended, Text: "the device cannot be reached, or refuses the account"}}, // long, because devices lock accounts
	{"Connection lost", kit.Refusal{Why: kit.Passing, Text: "the connection to the device was lost"}},
	{"Connection timed out", kit.Refusal{Why: kit.Passing, Text: "the device did not answer in time"}},
}

// explain returns why a run was not a success. If the power device serves only this machine, the
// reason concerns only this machine. Otherwise it may concern all machines.
func (c *Client) explain(m *machine, a kit.Ran) *kit.Refusal {
	e := &kit.Refusal{Why: kit.Unreached, Again: remediations.AskMended, Text: fmt.Sprintf("the agent gave no usable answer (exit code %d)", a.Code), Cause: m.secrets.Error(a.Err)}
	if !errors.As(a.Err, &e) && a.Err == nil {
		for _, f := range failures {
			if strings.Contains(a.Errors, f.says) {
				e = &f.Refusal
				break
			}
		}
		e.Text += m.secrets.Quoted(cmp.Or(last(a.Errors), last(a.Out)))
	}
	switch {
	case m.own() && e.Why == kit.Account:
		e.Why, e.Again = kit.Unreached, remediations.AskMended
	case m.own() && e.Why == kit.Passing:
		e.Why = kit.Unreached
	}
	return e
}
