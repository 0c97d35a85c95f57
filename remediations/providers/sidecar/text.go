package sidecar

import (
	"encoding/json"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/internal/text"
)

// maxText bounds quoted foreign text, in bytes.
const maxText = 200

// clip makes foreign text safe to show: one line of bounded length.
func clip(s string) string { return text.Line(s, maxText) }

// answerText returns an answer's text without any token, because the other side may repeat a token.
func answerText(tokens *redact.Keyring, body []byte) string {
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
	return tokens.Text(text)
}

// said appends a text that may be empty.
func said(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
