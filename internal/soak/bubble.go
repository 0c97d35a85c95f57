package soak

import (
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

// InBubble runs f in a bubble of testing/synctest. If f panics, InBubble panics too, because the
// library rapid ends a test case with a panic.
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

// giveUp is a separate function, because rapid distinguishes failures by the place of their panic.
func giveUp(why any) { panic(why) }

// Awake moves t's monotonic reading and keeps the wall clock. In production they disagree after a
// suspended machine wakes up or its wall clock is set.
func Awake(t time.Time, by time.Duration) time.Time {
	mono := reflect.ValueOf(&t).Elem().FieldByName("ext") // the field with the monotonic reading, if t has one
	*(*int64)(mono.Addr().UnsafePointer()) += int64(by)
	return t
}
