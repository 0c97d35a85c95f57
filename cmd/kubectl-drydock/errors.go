package main

import (
	"errors"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/internal/text"
)

// command prints one sentence per refusal.
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

// inCluster is an error of a change, with its cluster.
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

// refusals are the errors of several nodes.
type refusals []error

func (r refusals) Error() string { return errors.Join(r...).Error() }

// plain makes a text fit for one line, so that what others wrote on a Node cannot control a
// terminal.
func plain(s string) string { return text.Line(s, maxCell) }

// maxCell bounds a text of a table; Drydock's own texts are shorter.
const maxCell = 8 << 10
