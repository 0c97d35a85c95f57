package sidecar

import (
	"encoding/json"
	"strings"
	"unicode"
)

// maxText bounds what is quoted of others, in bytes.
const maxText = 200

// clip makes foreign text fit for people to see: one line of printable characters, of bounded length.
func clip(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return !unicode.IsGraphic(r) || unicode.IsSpace(r) }), " ")
	if len(text) > maxText {
		text = strings.ToValidUTF8(text[:maxText], "") + "..."
	}
	return text
}

// answerText is what an answer says, without any token, which the other side may repeat.
func (t *tokens) answerText(body []byte) string {
	var said struct {
		Error   string `json:"error"`
		Message string `json:"message"`
	}
	text := string(body)
	if json.Unmarshal(body, &said) == nil {
		switch {
		case said.Error != "":
			text = said.Error
		case said.Message != "":
			text = said.Message
		}
	}
	return clip(t.hide(text))
}

// said appends a text that may be empty.
func said(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
