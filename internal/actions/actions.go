package actions

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/text"
)

// Action is one kind of request that a person may make for a node, for example a pause.
type Action struct {
	Name string
	// Will is one sentence that says what the action does.
	Will string
	// Verb is the RBAC verb on repairs.drydock.dev that the user needs besides the right to patch
	// nodes. It may be empty.
	Verb string
	Keys []string
	// Parameters are the parameters that a caller may give.
	Parameters []Parameter

	// refuses returns why the action makes no sense for the Node. A nil function means that it always
	// makes sense.
	refuses func(*corev1.Node) error
	prepare func(given Params, now time.Time) (apply, error)
}

// Parameter is a flag of the action's command, or the command's argument.
type Parameter struct {
	Name string
	// Ask is the question in the page's form. Example is an example of an answer.
	Ask, Example string
	Required     bool
	// Choices are the allowed values. If it is empty, any text is allowed.
	Choices []string
	// Argument reports that the command takes the parameter by position.
	Argument bool
}

// Params are the values of parameters, by name.
type Params map[string]string

type apply func(ctx context.Context, w *Writer, node string) (said string, err error)

// Prepared is an action whose parameters are valid.
type Prepared struct {
	action *Action
	given  Params
	apply  apply
}

// All returns all actions in the order of the menus.
func All() []*Action {
	return []*Action{Pause(), Resume(), Repair(), Approve(), Cancel(), Reset(), BreakGlass()}
}

// Named returns the action with that name, or nil if there is none.
func Named(name string) *Action {
	all := All()
	if i := slices.IndexFunc(all, func(a *Action) bool { return a.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// Refuses returns why the action makes no sense for the Node n, or nil if it makes sense.
func (a *Action) Refuses(n *corev1.Node) error {
	if a.refuses == nil {
		return nil
	}
	return a.refuses(n)
}

// Prepare validates the parameters. It sends nothing to the API server yet.
func (a *Action) Prepare(given Params, now time.Time) (*Prepared, error) {
	for name, value := range given {
		i := slices.IndexFunc(a.Parameters, func(p Parameter) bool { return p.Name == name })
		switch {
		case i < 0:
			return nil, cli.Usagef("%s has no parameter %q", a.Name, text.Line(name, maxText))
		case len(value) > maxText:
			return nil, cli.Usagef("--%s has %d bytes; the limit is %d", name, len(value), maxText)
		}
	}
	run, err := a.prepare(given, now)
	if err != nil {
		return nil, err
	}
	return &Prepared{action: a, given: given, apply: run}, nil
}

// Apply requests the action on the node and returns a sentence that says what was done.
func (p *Prepared) Apply(ctx context.Context, w *Writer, node string) (said string, err error) {
	said, err = p.apply(ctx, w, node)
	return w.saying(said), err
}

// Command returns the plugin's command that makes the same request.
func (a *Action) Command(node string, given Params) string {
	words := []string{"kubectl drydock", a.Name, text.ShellWord(node)}
	for _, p := range a.Parameters {
		switch value := given[p.Name]; {
		case value == "":
		case p.Argument:
			words = append(words, text.ShellWord(value))
		default:
			words = append(words, "--"+p.Name, text.ShellWord(value))
		}
	}
	return strings.Join(words, " ")
}

const (
	// MaxWhy bounds a reason, in bytes. It must leave room for Drydock's records: all annotations of a
	// Node together may have 256 KiB.
	MaxWhy = 256
	// maxText bounds every other text, in bytes.
	maxText = 8 << 10
)

// plain removes control characters: text that others wrote on a Node must not control the terminal.
func plain(s string) string { return text.Line(s, maxText) }

func reason(why string) (string, error) {
	if why = plain(why); len(why) > MaxWhy {
		return "", cli.Usagef("--why has %d bytes; the limit is %d", len(why), MaxWhy)
	}
	return why, nil
}
