package ui

import (
	"strings"
	"time"
)

// Piece is a part of a sentence. Command: it is a command to type, between backticks in the
// sentence.
type Piece struct {
	Text    string
	Command bool
}

// said splits a sentence, so that a page marks its commands.
func said(sentence string) (out []Piece) {
	for i, text := range strings.Split(plain(sentence), "`") {
		if text != "" {
			out = append(out, Piece{text, i%2 == 1})
		}
	}
	return out
}

// changed splits what a person may do about a hold: one command, or a sentence.
func changed(change string) []Piece {
	if program, _, _ := strings.Cut(change, " "); !strings.Contains(change, "`") && (program == "kubectl" || program == "amtool") {
		return []Piece{{plain(change), true}}
	}
	return said(change)
}

// short formats an RFC 3339 time for a narrow column. The year is in the element's datetime.
func short(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return plain(at)
	}
	return t.UTC().Format("01-02 15:04:05Z")
}
