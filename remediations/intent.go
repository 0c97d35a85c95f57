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

// NextIntentID returns the id of the next attempt. An attempt that was stopped right before the
// call gets a new id when it is repeated. With the same id, a former leader could take the new call
// for the call that it did not make.
func NextIntentID(r *Record, s StepRef, now time.Time) string {
	if r.Withheld() {
		return intentID(r, s) + "-" + strconv.FormatInt(now.UnixNano(), 36)
	}
	return intentID(r, s)
}

func intentID(r *Record, s StepRef) string { return fmt.Sprintf("%s-%d-%d", r.ID, s.Index, s.Attempt) }

// Issued returns the last attempt that was made. While the repair is Pending, the record's Step is
// not this attempt, but the next one.
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

// AttemptNamed parses the id of an attempt of the repair, which does not have the step's name. It
// returns false for the id of another repair.
func AttemptNamed(repair, attempt string) (ref StepRef, ok bool) {
	if _, err := fmt.Sscanf(attempt, repair+"-%d-%d", &ref.Index, &ref.Attempt); err != nil {
		return StepRef{}, false
	}
	return ref, true
}

// Of reports whether the intent is for this attempt of the record's repair.
func (i *Intent) Of(r *Record, s StepRef) bool {
	id := intentID(r, s)
	return i != nil && (i.ID == id || strings.HasPrefix(i.ID, id+"-"))
}

// Ahead reports whether the time of the intent is not in the past by this replica's clock. While it
// is ahead, every observation seems older than the intent, and the target would be observed again
// and again.
func (i *Intent) Ahead(now time.Time) bool { return !now.After(i.At) }

// maxBefore is in bytes.
const maxBefore = 1 << 10

// Before has facts that a provider found right before a step, as one JSON object, for its proof
// after the step. Only the same provider reads them. Empty means no facts.
type Before string

// Keeping returns a provider's answer that nothing prevents the step, with the facts v. If they do
// not fit into the record, that is the answer's Trouble.
func Keeping(v any) Survey {
	b := Before(EncodeJSON(v))
	if err := b.Check(); err != nil {
		return Survey{Trouble: fmt.Sprintf("the provider's facts from before the step cannot be recorded: %v", err), Again: AskMended}
	}
	return Survey{Before: b}
}

// Read decodes the facts into v. A key that v lacks is an error: another provider or another
// version wrote it.
func (b Before) Read(v any) error {
	if b == "" {
		return errors.New("the record has no facts from before the step, which the proof needs")
	}
	if err := DecodeStrict(string(b), v); err != nil {
		return fmt.Errorf("this provider cannot read the facts from before the step that are on record: %w", err)
	}
	return nil
}

// MarshalJSON returns the object unchanged, not as an escaped string, so that a record stays
// readable.
func (b Before) MarshalJSON() ([]byte, error) { return []byte(b), b.Check() }

// UnmarshalJSON accepts any JSON object, because only the provider knows its content.
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

// Check returns an error if b is too long or is not a JSON object.
func (b Before) Check() error {
	switch {
	case len(b) > maxBefore:
		return fmt.Errorf("the facts have %d bytes, and at most %d can be recorded", len(b), maxBefore)
	case !strings.HasPrefix(string(b), "{") || !json.Valid([]byte(b)) || !utf8.ValidString(string(b)):
		return errors.New("the facts are not a JSON object")
	}
	return nil
}

// withholding is the error of the last check before a call to a provider.
type withholding struct {
	reason Reason
	error
}

func (w withholding) Unwrap() error { return w.error }

// Withhold returns an error that stops a call in the last check before it. Its reason goes into the
// record.
func Withhold(reason Reason, format string, args ...any) error {
	return withholding{reason, fmt.Errorf(format, args...)}
}

// WithheldFor returns the reason in an error from Withhold, and otherwise for any other error.
func WithheldFor(err error, otherwise Reason) Reason {
	if w := (withholding{}); errors.As(err, &w) {
		return w.reason
	}
	return otherwise
}

// Withheld reports whether the last check before the call stopped the last attempt, so that the
// record's Step must still be made.
func (r *Record) Withheld() bool {
	return r.Phase == PhasePending && r.Intent != nil && r.Intent.ID == ""
}

// NameIntent gives an id to the intent of a withheld attempt, for a repair that continues without
// that attempt. In every phase except Pending, an intent needs an id.
func (r *Record) NameIntent() {
	if r.Intent != nil && r.Intent.ID == "" {
		r.Intent.ID = r.ID + "-withheld"
	}
}
