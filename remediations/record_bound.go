package remediations

import "slices"

// Encode returns the record as JSON, the value of its annotation. If it would be longer than
// MaxRecordBytes, Encode shortens the parts that only inform people, and keeps everything that
// decisions depend on.
func (r *Record) Encode() string {
	text := EncodeJSON(r)
	for _, shorten := range []func(*Record){withoutReasons, withoutEvidence, withoutWords, withoutOthers, withFewerAttempts(200), withFewerAttempts(50)} {
		if len(text) <= MaxRecordBytes {
			break
		}
		r = r.Clone()
		shorten(r)
		text = EncodeJSON(r)
	}
	return text
}

func withoutReasons(r *Record) {
	for i := range r.Passed {
		r.Passed[i].Why = clip(r.Passed[i].Why, 20)
	}
}

func withoutEvidence(r *Record) {
	r.Evidence = ""
	for i := range r.Passed {
		r.Passed[i].Why = ""
	}
}

func withoutWords(r *Record) {
	r.Note = clip(r.Note, 80)
	if r.Hold != nil {
		r.Hold.Message = clip(r.Hold.Message, 80)
	}
	if r.Intent != nil {
		r.Intent.Why = clip(r.Intent.Why, 80)
	}
}

func withoutOthers(r *Record) { r.Also = nil }

// withFewerAttempts also keeps a drain, if the node was drained.
func withFewerAttempts(most int) func(*Record) {
	return func(r *Record) {
		if len(r.Done) <= most {
			return
		}
		drains := slices.DeleteFunc(slices.Clone(r.Done), func(done Attempt) bool { return done.Name != drain.Name })
		r.Done = r.Done[len(r.Done)-most:]
		if len(drains) > 0 && !r.Drained() {
			r.Done = append(drains[:1], r.Done...)
		}
	}
}

// AlsoMost is the greatest number of alerts in Record.Also.
const AlsoMost = 16
