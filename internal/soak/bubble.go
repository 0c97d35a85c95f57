package soak

import (
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

// InBubble runs f in a bubble with its own time. It passes on a panic: rapid gives up a case by a
// panic.
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

// giveUp drops a case of rapid without a result. It panics in its own function: rapid distinguishes
// failures by their place.
func giveUp(why any) { panic(why) }

// Awake returns the time with its monotonic reading moved, as on a machine that was suspended, or
// whose wall clock was set.
func Awake(t time.Time, by time.Duration) time.Time {
	mono := reflect.ValueOf(&t).Elem().FieldByName("ext") // of a time that has one, the monotonic reading
	*(*int64)(mono.Addr().UnsafePointer()) += int64(by)
	return t
}
