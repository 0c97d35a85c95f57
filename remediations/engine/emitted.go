package engine

// Emitted are the keys of Events that were already sent, so that each is sent once. If they are
// lost, an Event is sent again.
type Emitted map[string]bool

// First notes the key and returns whether the key was new. With more than most keys it starts empty
// again.
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
