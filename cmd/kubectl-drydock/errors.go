package main

import (
	"errors"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/internal/text"
)

// command says a sentence for each thing that was refused.
var command = cli.Program{Name: "kubectl drydock", Lines: func(err error) []string {
	var several refusals
	if !errors.As(err, &several) {
		several = refusals{err}
	}
	lines := make([]string, len(several))
	for i, e := range several {
		lines[i] = "error: " + plain(sentence(e))
	}
	return lines
}}

// inCluster is an error of a change, with the cluster that it was for.
type inCluster struct {
	inspect.Cluster
	err error
}

func (e inCluster) Error() string { return e.err.Error() }

func (e inCluster) Unwrap() error { return e.err }

func sentence(err error) string {
	var change inCluster
	if errors.As(err, &change) {
		return change.Says(inspect.Sentence(change.err))
	}
	return inspect.Sentence(err)
}

// refusals are those of several nodes.
type refusals []error

func (r refusals) Error() string { return errors.Join(r...).Error() }

// plain makes a text fit for one line of a terminal: what others wrote on a Node must not be obeyed by it.
func plain(s string) string { return text.Line(s, maxCell) }

// maxCell bounds a text of a table; what Drydock writes is shorter.
const maxCell = 8 << 10
