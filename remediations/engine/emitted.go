package engine

// Emitted are the keys of Events that were sent already, so that each is sent once. They may be lost: the Event comes again then.
type Emitted map[string]bool

// First notes the key, and says that it was not noted yet. With more than most of them it begins anew.
func (s *Emitted) First(key string, most int) bool {
	if (*s)[key] {
		return false
	}
	if len(*s) > most {
		*s = Emitted{}
	}
	(*s)[key] = true
	return true
}
