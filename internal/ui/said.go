package ui

import (
	"strings"
	"time"
)

// piece is a part of a sentence. Command reports that it was between backticks.
type piece struct {
	Text    string
	Command bool
}

func said(sentence string) (out []piece) {
	for i, text := range strings.Split(plain(sentence), "`") {
		if text != "" {
			out = append(out, piece{text, i%2 == 1})
		}
	}
	return out
}

// changed splits either one command or a sentence with commands between backticks.
func changed(change string) []piece {
	if program, _, _ := strings.Cut(change, " "); !strings.Contains(change, "`") && (program == "kubectl" || program == "amtool") {
		return []piece{{plain(change), true}}
	}
	return said(change)
}

// short leaves out the year, which the element's attribute datetime has.
func short(at string) string {
	t, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return plain(at)
	}
	return t.UTC().Format("01-02 15:04:05Z")
}
