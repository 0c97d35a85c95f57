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

// The time at the beginning of an agent's lines is removed. Otherwise each failure would have a
// different text, and so a separate Event.
var stamp = regexp.MustCompile(`^[0-9-]+ [0-9:,.]+ `)

// last skips empty lines. Python writes warnings and traces before the line with the error.
func last(of string) (last string) {
	for line := range strings.Lines(of) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "Please use '-h'") {
			last = stamp.ReplaceAllString(line, "")
		}
	}
	return last
}

// run calls may right before the start, and does not start the agent if may returns an error.
// Agents for the same power device run one after the other, because many devices accept only one
// session. Options and secrets go to the agent's standard input.
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

// power returns "" for unknown. The exit code and the text must agree, because an agent that
// refuses its options may have the exit code for "off". If the agent ignored an option, it may have
// read another machine.
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

const on, off = "on", "off"

var statusLine = regexp.MustCompile(`(?m)^\s*Status: (.*?)\s*$`)

func says(a kit.Ran, success string) bool {
	return a.Err == nil && a.Code == 0 && slices.Contains(strings.Split(strings.TrimSpace(a.Out), "\n"), "Success: "+success)
}

// An agent that does not know an option prints this warning, and acts without the option.
const ignores = "Ignoring unknown option"

// failures has messages of the library that most agents use, because the exit code is always 1. The
// Refusals are for a power device that serves all machines.
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

// If the power device serves only this machine, the reason concerns only this machine. Otherwise it
// may concern all machines.
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
