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

// NextIntentID names the attempt that is about to be made. One that was given back is made again under a longer name, its
// own: a process that led before may remember that the call was withheld, and must not take the next call for that one.
func NextIntentID(r *Record, s StepRef, now time.Time) string {
	if r.Withheld() {
		return intentID(r, s) + "-" + strconv.FormatInt(now.UnixNano(), 36)
	}
	return intentID(r, s)
}

// intentID names one attempt of one step of one repair.
func intentID(r *Record, s StepRef) string { return fmt.Sprintf("%s-%d-%d", r.ID, s.Index, s.Attempt) }

// Issued is the attempt of the intent, read from its name; false: none was issued. While the repair is Pending, Step already
// names the next attempt.
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

// AttemptNamed reads the step's index and the attempt from the name of an attempt of the repair; false: it is none of these. The step's name
// is not in it.
func AttemptNamed(repair, attempt string) (ref StepRef, ok bool) {
	if _, err := fmt.Sscanf(attempt, repair+"-%d-%d", &ref.Index, &ref.Attempt); err != nil {
		return StepRef{}, false
	}
	return ref, true
}

// Of says that the intent is one for the attempt.
func (i *Intent) Of(r *Record, s StepRef) bool {
	id := intentID(r, s)
	return i != nil && (i.ID == id || strings.HasPrefix(i.ID, id+"-"))
}

// Ahead says that the step was issued at a time which this process's clock has not reached: whatever it looks at now
// would seem to be from before, and looking again at once would never end.
func (i *Intent) Ahead(now time.Time) bool { return !now.After(i.At) }

// maxBefore bounds what a provider keeps with an intent.
const maxBefore = 1 << 10

// Before is what a provider found right before a step: one JSON object, kept with the intent. Without it nobody could prove
// afterwards that a machine was replaced and not merely deleted. The provider that wrote it is the only one that reads it.
// Empty: nothing was kept.
type Before string

// Keeping is a provider's answer that nothing speaks against the step, with what the provider needs to know again afterwards.
func Keeping(v any) Survey {
	b := Before(EncodeJSON(v))
	if err := b.Check(); err != nil {
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
func (b Before) MarshalJSON() ([]byte, error) { return []byte(b), b.Check() }

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

// withholding is the error of a last look that withholds a call. Its reason is the one that the record gives.
type withholding struct {
	reason Reason
	error
}

func (w withholding) Unwrap() error { return w.error }

// Withhold is an error that withholds a call for the reason.
func Withhold(reason Reason, format string, args ...any) error {
	return withholding{reason, fmt.Errorf(format, args...)}
}

// WithheldFor is the reason that the last look's error gives; otherwise: that of an error which gives none.
func WithheldFor(err error, otherwise Reason) Reason {
	if w := (withholding{}); errors.As(err, &w) {
		return w.reason
	}
	return otherwise
}

// Withheld says that the attempt which was to be made last was given back: no intent is left, and its Step is still to come.
func (r *Record) Withheld() bool {
	return r.Phase == PhasePending && r.Intent != nil && r.Intent.ID == ""
}

// NameIntent names an intent whose attempt was given back, when the repair goes on without making it: only while the record is
// Pending is an intent without a name one that is still to come.
func (r *Record) NameIntent() {
	if r.Intent != nil && r.Intent.ID == "" {
		r.Intent.ID = r.ID + "-withheld"
	}
}
