package remediations

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// NextIntentID returns the id of the attempt that comes next. A withheld attempt is made again
// under a longer id of its own. A former leader may remember that the call was withheld, and must
// not take the next call for that one.
func NextIntentID(r *Record, s StepRef, now time.Time) string {
	if r.Withheld() {
		return intentID(r, s) + "-" + strconv.FormatInt(now.UnixNano(), 36)
	}
	return intentID(r, s)
}

// intentID returns the id of one attempt of one step of one repair.
func intentID(r *Record, s StepRef) string { return fmt.Sprintf("%s-%d-%d", r.ID, s.Index, s.Attempt) }

// Issued returns the attempt of the intent, parsed from its id; false: no attempt was issued. While
// the repair is Pending, Step already names the next attempt.
func (r *Record) Issued() (StepRef, bool) {
	if r.Intent == nil {
		return StepRef{}, false
	}
	ref, ok := AttemptNamed(r.ID, r.Intent.ID)
	if ok {
		ref.Name = LastDone(r).Name
	}
	return ref, ok
}

// AttemptNamed parses the step's index and the attempt's number from the id of an attempt of the
// repair. It returns false for any other id. The id does not contain the step's name.
func AttemptNamed(repair, attempt string) (ref StepRef, ok bool) {
	if _, err := fmt.Sscanf(attempt, repair+"-%d-%d", &ref.Index, &ref.Attempt); err != nil {
		return StepRef{}, false
	}
	return ref, true
}

// Of reports whether the intent is one for the attempt.
func (i *Intent) Of(r *Record, s StepRef) bool {
	id := intentID(r, s)
	return i != nil && (i.ID == id || strings.HasPrefix(i.ID, id+"-"))
}

// Ahead reports whether the step was issued at a time that this replica's clock has not reached.
// Each observation would then seem older than the step, and Drydock would repeat the observation
// without end.
func (i *Intent) Ahead(now time.Time) bool { return !now.After(i.At) }

// maxBefore bounds what a record keeps for a provider in an intent.
const maxBefore = 1 << 10

// Before is what a provider found right before a step: one JSON object, kept with the intent. It
// later proves that a machine was replaced, and not merely deleted. Only the provider that wrote it
// reads it. Empty: nothing was kept.
type Before string

// Keeping returns a provider's answer that nothing prevents the step. v is what the provider needs
// for the proof afterwards.
func Keeping(v any) Survey {
	b := Before(EncodeJSON(v))
	if err := b.Check(); err != nil {
		return Survey{Trouble: fmt.Sprintf("the record cannot keep what there was before the step: %v", err), Again: AskMended}
	}
	return Survey{Before: b}
}

// Read decodes what the provider kept into v. A key that v does not have is an error: another
// provider, or another version, wrote it.
func (b Before) Read(v any) error {
	if b == "" {
		return errors.New("the record does not say what there was before the step")
	}
	if err := DecodeStrict(string(b), v); err != nil {
		return fmt.Errorf("the record says what there was before the step in words that this provider does not know: %w", err)
	}
	return nil
}

// MarshalJSON writes the object unchanged, so that a record stays readable and equals what earlier
// versions wrote.
func (b Before) MarshalJSON() ([]byte, error) { return []byte(b), b.Check() }

// UnmarshalJSON accepts any object. Only its provider knows the content.
func (b *Before) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	var out bytes.Buffer
	if err := json.Compact(&out, data); err != nil {
		return err
	}
	*b = Before(out.String())
	return b.Check()
}

func (b Before) Check() error {
	switch {
	case len(b) > maxBefore:
		return fmt.Errorf("it has %d bytes, and at most %d are kept", len(b), maxBefore)
	case !strings.HasPrefix(string(b), "{") || !json.Valid([]byte(b)) || !utf8.ValidString(string(b)):
		return errors.New("it is not a JSON object")
	}
	return nil
}

// withholding is the error of a last look that withholds a call. The record gives its reason.
type withholding struct {
	reason Reason
	error
}

func (w withholding) Unwrap() error { return w.error }

// Withhold returns an error that withholds a call for the reason.
func Withhold(reason Reason, format string, args ...any) error {
	return withholding{reason, fmt.Errorf(format, args...)}
}

// WithheldFor returns the reason of the last look's error, or otherwise if the error has no reason.
func WithheldFor(err error, otherwise Reason) Reason {
	if w := (withholding{}); errors.As(err, &w) {
		return w.reason
	}
	return otherwise
}

// Withheld reports whether the last attempt was withheld: its intent has no id, and Step is still
// to be issued.
func (r *Record) Withheld() bool {
	return r.Phase == PhasePending && r.Intent != nil && r.Intent.ID == ""
}

// NameIntent gives a withheld intent an id when the repair continues without that attempt. Only in
// a Pending record does an intent without an id mean an attempt that is still to come.
func (r *Record) NameIntent() {
	if r.Intent != nil && r.Intent.ID == "" {
		r.Intent.ID = r.ID + "-withheld"
	}
}
