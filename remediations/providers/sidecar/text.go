package sidecar

import (
	"encoding/json"

	"drydock.dev/drydock/internal/redact"
	"drydock.dev/drydock/internal/text"
)

// maxText is in bytes.
const maxText = 200

func clip(s string) string { return text.Line(s, maxText) }

// answerText removes tokens, because the other side may repeat the token that it got.
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

func said(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}
