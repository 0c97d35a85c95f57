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

// Action is one thing that a person may request.
type Action struct {
	// Name is the name of the command.
	Name string
	// Will is one sentence about what the action does.
	Will string
	// Verb is the verb that the caller needs on repairs.drydock.dev besides patch on nodes. Empty:
	// none.
	Verb string
	// Keys are the annotations that the action sets or removes.
	Keys []string
	// Parameters are what a caller may give with the action.
	Parameters []Parameter

	// refuses says why the action has no meaning for the Node as read. Nil: the action is always
	// allowed.
	refuses func(*corev1.Node) error
	prepare func(given Params, now time.Time) (apply, error)
}

// Parameter is one parameter of an action: a flag of its command, or the command's argument.
type Parameter struct {
	Name string
	// Ask is the question in a form, Example an example of an answer.
	Ask, Example string
	Required     bool
	// Choices are all allowed values. Empty: any text.
	Choices []string
	// Argument: the command takes it by position, without a flag.
	Argument bool
}

// Params are the given values, by the parameter's name.
type Params map[string]string

type apply func(ctx context.Context, w *Writer, node string) (said string, err error)

// Prepared is an action with valid parameters.
type Prepared struct {
	action *Action
	given  Params
	apply  apply
}

// All returns the actions in the order of the menus.
func All() []*Action {
	return []*Action{Pause(), Resume(), Repair(), Approve(), Cancel(), Reset(), BreakGlass()}
}

// Named returns the action with that name. Nil: there is none.
func Named(name string) *Action {
	all := All()
	if i := slices.IndexFunc(all, func(a *Action) bool { return a.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// Refuses says why the action has no meaning for the Node as read. Nil: the action is allowed.
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
			return nil, cli.Usagef("%s takes no %q", a.Name, text.Line(name, maxText))
		case len(value) > maxText:
			return nil, cli.Usagef("--%s has %d bytes; give at most %d", name, len(value), maxText)
		}
	}
	run, err := a.prepare(given, now)
	if err != nil {
		return nil, err
	}
	return &Prepared{action: a, given: given, apply: run}, nil
}

// Apply requests the action on the node and returns what was done, in one sentence.
func (p *Prepared) Apply(ctx context.Context, w *Writer, node string) (said string, err error) {
	said, err = p.apply(ctx, w, node)
	return w.saying(said), err
}

// Command returns the command that requests the same.
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
	// MaxWhy bounds a reason, in bytes. Events and tables show the reason, and it shares the 256
	// KiB that a Node's annotations may have with Drydock's records.
	MaxWhy = 256
	// maxText bounds every other text.
	maxText = 8 << 10
)

// plain makes a text fit for one line, so that what others wrote on a Node cannot control a
// terminal.
func plain(s string) string { return text.Line(s, maxText) }

// reason makes --why fit for an annotation of one line.
func reason(why string) (string, error) {
	if why = plain(why); len(why) > MaxWhy {
		return "", cli.Usagef("--why has %d bytes; give at most %d", len(why), MaxWhy)
	}
	return why, nil
}
