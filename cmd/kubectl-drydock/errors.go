package main

import (
	"errors"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/internal/text"
)

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

type refusals []error

func (r refusals) Error() string { return errors.Join(r...).Error() }

// plain puts a text on one line without control characters: text that others wrote on a Node must
// not control the terminal.
func plain(s string) string { return text.Line(s, maxCell) }

const maxCell = 8 << 10
