package ui

import (
	"strings"
	"time"
)

// Piece is a part of a sentence; Command: it is one to type, which the sentence has between backticks.
type Piece struct {
	Text    string
	Command bool
}

// said takes a sentence apart, so that a page shows its commands as such.
func said(sentence string) (out []Piece) {
	for i, text := range strings.Split(plain(sentence), "`") {
		if text != "" {
			out = append(out, Piece{text, i%2 == 1})
		}
	}
	return out
}

// changed takes apart what a person may do about a hold: one command, or a sentence.
func changed(change string) []Piece {
	if program, _, _ := strings.Cut(change, " "); !strings.Contains(change, "`") && (program == "kubectl" || program == "amtool") {
		return []Piece{{plain(change), true}}
	}
	return said(change)
}

// short is a time in RFC 3339 for a narrow column. The year stands in the element's datetime.
func short(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return plain(at)
	}
	return t.UTC().Format("01-02 15:04:05Z")
}
