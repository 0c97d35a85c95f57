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

// NextIntentID returns the id of the next attempt. If the last check before the call stopped the
// attempt, the repetition of the attempt gets a new, longer id. With the same id, a former leader
// could take the new call for the call that it did not make.
func NextIntentID(r *Record, s StepRef, now time.Time) string {
	if r.Withheld() {
		return intentID(r, s) + "-" + strconv.FormatInt(now.UnixNano(), 36)
	}
	return intentID(r, s)
}

func intentID(r *Record, s StepRef) string { return fmt.Sprintf("%s-%d-%d", r.ID, s.Index, s.Attempt) }

// Issued returns the last attempt that was made, from the id of the intent. ok is false if no
// attempt was made. While the repair is Pending, the record's Step is not this attempt, but the
// next one.
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

// AttemptNamed parses the id of an attempt of the repair: the step's index and the attempt's
// number. The id does not have the step's name. It returns false if the id belongs to another
// repair.
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

// Ahead reports whether the time of the intent is not in the past by this replica's clock. While
// Ahead is true, every observation seems older than the intent. Without this check, Drydock would
// observe the target again and again.
func (i *Intent) Ahead(now time.Time) bool { return !now.After(i.At) }

// maxBefore is the greatest length of Before in bytes.
const maxBefore = 1 << 10

// Before has facts that a provider found right before a step: one JSON object, stored with the
// intent. The provider needs them for its proof after the step, for example that a machine was
// replaced and not only deleted. Only the same provider reads them. Empty means no facts.
type Before string

// Keeping returns a provider's answer that nothing prevents the step. The answer has the facts v in
// its field Before. If the facts do not fit into the record, the answer instead has this as its
// Trouble.
func Keeping(v any) Survey {
	b := Before(EncodeJSON(v))
	if err := b.Check(); err != nil {
		return Survey{Trouble: fmt.Sprintf("the provider's facts from before the step cannot be recorded: %v", err), Again: AskMended}
	}
	return Survey{Before: b}
}

// Read decodes the facts into v. It returns an error if they have a key that v lacks, because
// another provider or another version wrote them.
func (b Before) Read(v any) error {
	if b == "" {
		return errors.New("the record has no facts from before the step, which the proof needs")
	}
	if err := DecodeStrict(string(b), v); err != nil {
		return fmt.Errorf("this provider cannot read the facts from before the step that are on record: %w", err)
	}
	return nil
}

// MarshalJSON returns the object unchanged, not as an escaped string. So a record stays readable,
// and equals the form of earlier versions.
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

// withholding is the error of the last check before a call to a provider. It means that the call
// must not be made. The reason goes into the record.
type withholding struct {
	reason Reason
	error
}

func (w withholding) Unwrap() error { return w.error }

// Withhold returns an error for the last check before a call. The error stops the call, and its
// reason goes into the record.
func Withhold(reason Reason, format string, args ...any) error {
	return withholding{reason, fmt.Errorf(format, args...)}
}

// WithheldFor returns the reason in an error from Withhold. For any other error it returns the
// parameter otherwise.
func WithheldFor(err error, otherwise Reason) Reason {
	if w := (withholding{}); errors.As(err, &w) {
		return w.reason
	}
	return otherwise
}

// Withheld reports whether the last check before the call stopped the last attempt, so that the
// record's Step must still be made. The record is then Pending, and its intent has no id.
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
