package ledger

import "reflect"

// statusMore has the fields of Status that have a data key of their own. Versions of Drydock before
// them refuse a ledger with an unknown field in "status", but ignore an unknown data key. A new
// field of Status belongs here, too.
type statusMore struct {
	WentBack  *WentBack         `json:"wentBack,omitempty"`
	Admission *Admission        `json:"admission,omitempty"`
	Aside     string            `json:"aside,omitempty"`
	Denied    string            `json:"denied,omitempty"`
	Limited   []string          `json:"limited,omitempty"`
	Unwritten map[string]string `json:"unwritten,omitempty"`
}

// more returns those fields of the status. put sets them.
func (s *Status) more() statusMore {
	return statusMore{s.WentBack, s.Admission, s.Aside, s.Denied, s.Limited, s.Unwritten}
}

func (s *Status) put(m statusMore) {
	s.WentBack, s.Admission, s.Aside, s.Denied, s.Limited, s.Unwritten = m.WentBack, m.Admission, m.Aside, m.Denied, m.Limited, m.Unwritten
}

// firstPart is the status in the data key "status", and morePart in "statusMore".
type (
	firstPart Status
	morePart  Status
)

// UnmarshalJSON reads all fields of the status: for some time, all of them were under the one key.
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
	// A version that had all fields under the other key leaves this one as it was. The longer hold
	// counts; the other fields only inform people until the next write.
	if was := p.WentBack; was != nil && (m.WentBack == nil || m.WentBack.Until.Before(was.Until)) {
		m.WentBack = was
	}
	(*Status)(p).put(m)
	return err
}

func (p *morePart) MarshalJSON() ([]byte, error) {
	return encodeEntry((*Status)(p).more(), p.UnknownMore)
}

// entries is how many fields there are to write.
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

// MarshalJSON writes the whole status, for people.
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
