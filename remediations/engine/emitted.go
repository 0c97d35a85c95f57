package engine

// Emitted are the keys of Events that were already sent, so that each Event is sent once. If the
// keys are lost, an Event is sent again.
type Emitted map[string]bool

// First notes the key and reports whether the key was new. If there are more than most keys, it
// first forgets all of them.
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
