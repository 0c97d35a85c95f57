package ledger

// Each type of entry keeps unknown fields, so that a write does not lose data of a newer Drydock.

func (s *Slot) UnmarshalJSON(data []byte) (err error) {
	type plain Slot
	*s = Slot{}
	s.Unknown, err = decodeEntry(data, (*plain)(s))
	return err
}

func (s Slot) MarshalJSON() ([]byte, error) {
	type plain Slot
	return encodeEntry(plain(s), s.Unknown)
}

func (b *Begun) UnmarshalJSON(data []byte) (err error) {
	type plain Begun
	*b = Begun{}
	b.Unknown, err = decodeEntry(data, (*plain)(b))
	return err
}

func (b Begun) MarshalJSON() ([]byte, error) {
	type plain Begun
	return encodeEntry(plain(b), b.Unknown)
}

func (o *Orphan) UnmarshalJSON(data []byte) (err error) {
	type plain Orphan
	*o = Orphan{}
	o.Unknown, err = decodeEntry(data, (*plain)(o))
	return err
}

func (o Orphan) MarshalJSON() ([]byte, error) {
	type plain Orphan
	return encodeEntry(plain(o), o.Unknown)
}

func (c *Cure) UnmarshalJSON(data []byte) (err error) {
	type plain Cure
	*c = Cure{}
	c.Unknown, err = decodeEntry(data, (*plain)(c))
	return err
}

func (c Cure) MarshalJSON() ([]byte, error) {
	type plain Cure
	return encodeEntry(plain(c), c.Unknown)
}

func (s *Span) UnmarshalJSON(data []byte) (err error) {
	type plain Span
	*s = Span{}
	s.Unknown, err = decodeEntry(data, (*plain)(s))
	return err
}

func (s Span) MarshalJSON() ([]byte, error) {
	type plain Span
	return encodeEntry(plain(s), s.Unknown)
}

func (e *RepairEnd) UnmarshalJSON(data []byte) (err error) {
	type plain RepairEnd
	*e = RepairEnd{}
	e.Unknown, err = decodeEntry(data, (*plain)(e))
	return err
}

func (e RepairEnd) MarshalJSON() ([]byte, error) {
	type plain RepairEnd
	return encodeEntry(plain(e), e.Unknown)
}

func (e *End) UnmarshalJSON(data []byte) (err error) {
	type plain End
	*e = End{}
	e.Unknown, err = decodeEntry(data, (*plain)(e))
	return err
}

func (e End) MarshalJSON() ([]byte, error) {
	type plain End
	return encodeEntry(plain(e), e.Unknown)
}
