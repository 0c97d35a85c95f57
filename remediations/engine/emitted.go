package engine

// emitted are the keys of Events that were sent already, so that each is sent once. They may be lost: the Event comes again then.
type emitted map[string]bool

// first notes the key, and says that it was not noted yet. With more than most of them it begins anew.
func (s *emitted) first(key string, most int) bool {
	if (*s)[key] {
		return false
	}
	if len(*s) > most {
		*s = emitted{}
	}
	(*s)[key] = true
	return true
}
