// Package conntrack replaces github.com/mwitkow/go-conntrack in builds from a checkout, by a
// replace directive in Drydock's go.work. `go install …@VERSION` uses the original, which only
// makes the program larger.
//
// Prometheus' HTTP client (prometheus/common/config) opens its connections through that package.
// The original counts the connections in metrics, and records them for the pages of
// golang.org/x/net/trace. Drydock serves neither. But these pages are registered when the program
// starts, and they need html/template, which calls methods by their names. So the linker must keep
// every exported method of every type: 25 MB of 65, and about 15 MB of resident memory.
// TestTheLinkerMayDropWhatNothingCalls in cmd/drydock fails if another dependency causes the same.
//
// The package has only the functions that prometheus/common uses. If prometheus/common needs more,
// the build fails.
package conntrack

import (
	"context"
	"net"
)

// DialContextFunc opens a connection, like net.Dialer.DialContext.
type DialContextFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// DialOption sets an option of NewDialContextFunc.
type DialOption func(*DialContextFunc)

// NewDialContextFunc returns the function of the last DialWithDialContextFunc option, or
// net.Dialer.DialContext.
func NewDialContextFunc(options ...DialOption) DialContextFunc {
	dial := new(net.Dialer).DialContext
	for _, set := range options {
		set(&dial)
	}
	return dial
}

// DialWithDialContextFunc uses dial to open the connections.
func DialWithDialContextFunc(dial DialContextFunc) DialOption {
	return func(d *DialContextFunc) { *d = dial }
}

// DialWithName does nothing: the original uses the name in metrics.
func DialWithName(string) DialOption { return func(*DialContextFunc) {} }

// DialWithTracing does nothing: Drydock has no page for traces.
func DialWithTracing() DialOption { return func(*DialContextFunc) {} }
