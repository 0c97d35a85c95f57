package engine

// Emitted are the keys of Events that were sent. If the keys are lost, an Event is sent again.
type Emitted map[string]bool

// First notes the key and reports whether it was new. It forgets all keys if there are more than
// most.
func (s *Emitted) First(key string, most int) bool {
	if (*s)[key] {
		return false
	}
	if *s == nil || len(*s) > most {
		*s = Emitted{}
	}
	(*s)[key] = true
	return true
}
