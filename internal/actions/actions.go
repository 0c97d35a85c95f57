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

// Action is one thing that a person may ask for.
type Action struct {
	// Name is the command's.
	Name string
	// Will says in one sentence what it does.
	Will string
	// Verb is what the caller needs on repairs.drydock.dev beside patch on nodes; empty: nothing.
	Verb string
	// Keys are the annotations that it writes or takes away.
	Keys []string
	// Parameters are what may be given with it.
	Parameters []Parameter

	// refuses says why it means nothing for the Node as it was read; nil: it may be asked for.
	refuses func(*corev1.Node) error
	prepare func(given Params, now time.Time) (apply, error)
}

// Parameter is what may be given with an action: the command's flag of that name, or its argument.
type Parameter struct {
	Name string
	// Ask is the question that a form puts, Example what an answer looks like.
	Ask, Example string
	Required     bool
	// Choices are all that may be given; empty: any text.
	Choices []string
	// Argument: the command takes it by its place, without a flag.
	Argument bool
}

// Params are what was given, by the parameter's name.
type Params map[string]string

type apply func(ctx context.Context, w *Writer, node string) (said string, err error)

// Prepared is an action whose parameters were found good.
type Prepared struct {
	action *Action
	given  Params
	apply  apply
}

// All are the actions, in the order in which they are offered.
func All() []*Action {
	return []*Action{Pause(), Resume(), Repair(), Approve(), Cancel(), Reset(), BreakGlass()}
}

// Named is the action of that name; nil: there is none.
func Named(name string) *Action {
	all := All()
	if i := slices.IndexFunc(all, func(a *Action) bool { return a.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}

// Refuses says why the action means nothing for the Node as it was read; nil: it may be asked for.
func (a *Action) Refuses(n *corev1.Node) error {
	if a.refuses == nil {
		return nil
	}
	return a.refuses(n)
}

// Prepare checks what was given. Nothing is asked of the API server yet.
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

// Apply asks for it on the node, and says in one sentence what was done.
func (p *Prepared) Apply(ctx context.Context, w *Writer, node string) (said string, err error) {
	said, err = p.apply(ctx, w, node)
	return w.saying(said), err
}

// Command is the command that asks for the same.
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
	// MaxWhy bounds a reason: it is shown in Events and tables, and shares the Node with the records.
	MaxWhy = 256
	// maxText bounds what is given at all.
	maxText = 8 << 10
)

// plain makes a text fit for one line: what others wrote on a Node must not be obeyed by a terminal.
func plain(s string) string { return text.Line(s, maxText) }

// reason makes --why fit for an annotation of one line.
func reason(why string) (string, error) {
	if why = plain(why); len(why) > MaxWhy {
		return "", cli.Usagef("--why has %d bytes; give at most %d", len(why), MaxWhy)
	}
	return why, nil
}
