package lab

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

var shared struct {
	once    sync.Once
	options Options
	lab     *Lab
	err     error
}

// Main runs a package's tests with one lab for all of them:
//
//	func TestMain(m *testing.M) { lab.Main(m, lab.Options{Nodes: 3}) }
//
// The first test that calls Shared starts the lab, so tests without a lab do not wait for one. At
// the end, Main fails if a secret of the lab was written anywhere.
func Main(m *testing.M, o Options) {
	shared.options = o
	m.Run() // m.Run sets the exit status, which TestMain returns
	if shared.lab == nil {
		return
	}
	leaks, err := shared.lab.Leaks(context.Background())
	if err != nil || len(leaks) > 0 {
		fmt.Fprintln(os.Stderr, "the lab's secrets:", strings.Join(leaks, "; "), err)
		shared.lab.Keep()
		shared.lab.Stop()
		os.Exit(1)
	}
	shared.lab.Stop()
}

// Shared returns the lab that the package's tests share. A node that one test leaves broken is
// still broken in the next test.
func Shared(t testing.TB) *Lab {
	t.Helper()
	shared.once.Do(func() {
		// The context of the first test must not end the lab.
		shared.lab, shared.err = Start(context.WithoutCancel(t.Context()), shared.options)
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	keepOnFailure(t, shared.lab)
	return shared.lab
}

// New returns a lab for this test alone, stopped when the test ends.
func New(t testing.TB, o Options) *Lab {
	t.Helper()
	l, err := Start(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Stop)
	keepOnFailure(t, l)
	return l
}

// AwaitEnd waits until the process has ended, for example because a test's hook kills it.
func AwaitEnd(t testing.TB, p *Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(Patience):
		t.Fatalf("%s did not end within %s; %s", p.spec.Name, Patience, p.LogEnd())
	}
}

func keepOnFailure(t testing.TB, l *Lab) {
	t.Cleanup(func() {
		if t.Failed() {
			l.Keep()
			t.Logf("the lab's logs: %s", l.LogDir())
		}
	})
}
