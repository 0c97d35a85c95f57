package remediations

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxBefore bounds what a provider keeps with an intent.
const maxBefore = 1 << 10

// Before is what a provider found right before a step: one JSON object, kept with the intent. Without it nobody could prove
// afterwards that a machine was replaced and not merely deleted. The provider that wrote it is the only one that reads it.
// Empty: nothing was kept.
type Before string

// Keeping is a provider's answer that nothing speaks against the step, with what the provider needs to know again afterwards.
func Keeping(v any) Survey {
	b := Before(EncodeJSON(v))
	if err := b.check(); err != nil {
		return Survey{Trouble: fmt.Sprintf("the record cannot keep what there was before the step: %v", err), Again: AskMended}
	}
	return Survey{Before: b}
}

// Read gives the provider back what it kept. A key that v does not have is an error: another provider, or another version, wrote it.
func (b Before) Read(v any) error {
	if b == "" {
		return errors.New("the record does not say what there was before the step")
	}
	if err := DecodeStrict(string(b), v); err != nil {
		return fmt.Errorf("the record says what there was before the step in words that this provider does not know: %w", err)
	}
	return nil
}

// MarshalJSON writes the object as it is, so that a record stays readable, and is what earlier versions wrote.
func (b Before) MarshalJSON() ([]byte, error) { return []byte(b), b.check() }

// UnmarshalJSON takes any object. What is in it is for its provider to understand.
func (b *Before) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		return err
	}
	*b = Before(out.String())
	return b.check()
}

func (b Before) check() error {
	switch {
	case len(b) > maxBefore:
		return fmt.Errorf("it has %d bytes, and at most %d are kept", len(b), maxBefore)
	case !strings.HasPrefix(string(b), "{") || !json.Valid([]byte(b)) || !utf8.ValidString(string(b)):
		return errors.New("it is no JSON object")
	}
	return nil
}
