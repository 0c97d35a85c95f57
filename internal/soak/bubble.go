package soak

import (
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

// InBubble runs f in a bubble of its own time. A panic, which is how rapid gives up on a case, is carried out of it.
func InBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	var caught any
	synctest.Test(t, func(t *testing.T) {
		defer func() { caught = recover() }()
		f(t)
	})
	switch {
	case caught == nil:
	case fmt.Sprintf("%T", caught) == "rapid.invalidData":
		giveUp(caught)
	default:
		panic(caught)
	}
}

// giveUp is how rapid drops a case that came to nothing. It panics in a place of its own: rapid tells failures apart
// by where they come from.
func giveUp(why any) { panic(why) }

// Awake is the time with its monotonic reading moved, as that of a machine that was suspended, or whose wall clock was set.
func Awake(t time.Time, by time.Duration) time.Time {
	mono := reflect.ValueOf(&t).Elem().FieldByName("ext") // of a time that has one, the monotonic reading
	*(*int64)(mono.Addr().UnsafePointer()) += int64(by)
	return t
}
