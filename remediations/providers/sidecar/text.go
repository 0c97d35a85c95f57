package sidecar

import (
	"encoding/json"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/internal/text"
)

// maxText is how many bytes of a foreign text are quoted.
const maxText = 200

// clip makes a foreign text safe to show: one printable line, cut to maxText.
func clip(s string) string { return text.Line(s, maxText) }

// answerText returns the message in an answer's body. It removes tokens, because the other side may
// repeat the token that it got.
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

// said returns ": " and the text. It returns "" if the text is empty.
func said(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
