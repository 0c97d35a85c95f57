package ledger

import (
	"reflect"

	"drydock.dev/drydock/remediations"
)

// statusMore is a second key, because older versions of Drydock refuse an unknown field in the key
// "status" and ignore an unknown key. So a new field of Status must be added here.
type statusMore struct {
	WentBack  *WentBack         `json:"wentBack,omitempty"`
	Admission *Admission        `json:"admission,omitempty"`
	Aside     string            `json:"aside,omitempty"`
	Denied    string            `json:"denied,omitempty"`
	Limited   []string          `json:"limited,omitempty"`
	Unwritten map[string]string `json:"unwritten,omitempty"`

	Concerns map[remediations.Reason]remediations.Concern `json:"concerns,omitempty"`
}

func (s *Status) more() statusMore {
	return statusMore{s.WentBack, s.Admission, s.Aside, s.Denied, s.Limited, s.Unwritten, s.Concerns}
}

func (s *Status) put(m statusMore) {
	s.WentBack, s.Admission, s.Aside, s.Denied, s.Limited, s.Unwritten, s.Concerns = m.WentBack, m.Admission, m.Aside, m.Denied, m.Limited, m.Unwritten, m.Concerns
}

// firstPart is the key "status", morePart the key "statusMore".
type (
	firstPart Status
	morePart  Status
)

// UnmarshalJSON reads all fields, because some earlier versions wrote all of them under this key.
func (p *firstPart) UnmarshalJSON(data []byte) error { return (*Status)(p).UnmarshalJSON(data) }

func (p *firstPart) MarshalJSON() ([]byte, error) {
	type plain Status
	first := Status(*p)
	first.put(statusMore{})
	return encodeEntry(plain(first), p.Unknown)
}

func (p *morePart) UnmarshalJSON(data []byte) (err error) {
	var m statusMore
	p.UnknownMore, err = decodeEntry(data, &m)
	// Some versions wrote all fields under the other key and did not update this one. So the hold
	// that ends later counts. The other fields only inform people until the next write.
	if was := p.WentBack; was != nil && (m.WentBack == nil || m.WentBack.Until.Before(was.Until)) {
		m.WentBack = was
	}
	(*Status)(p).put(m)
	return err
}

func (p *morePart) MarshalJSON() ([]byte, error) {
	return encodeEntry((*Status)(p).more(), p.UnknownMore)
}

func (p *morePart) entries() (n int) {
	if p.UnknownMore != "" {
		n++
	}
	m := reflect.ValueOf((*Status)(p).more())
	for i := range m.NumField() {
		if f := m.Field(i); !f.IsZero() && (f.Kind() != reflect.Map && f.Kind() != reflect.Slice || f.Len() > 0) {
			n++
		}
	}
	return n
}

// MarshalJSON writes the whole status as one object, for people.
func (s Status) MarshalJSON() ([]byte, error) {
	type plain Status
	data, err := encodeEntry(plain(s), s.Unknown)
	if s.UnknownMore == "" {
		return data, err
	}
	return merge(data, []byte(s.UnknownMore), reflect.TypeFor[plain]()), err
}

func (s *Status) UnmarshalJSON(data []byte) (err error) {
	type plain Status
	*s = Status{}
	s.Unknown, err = decodeEntry(data, (*plain)(s))
	return err
}
