// Package conntrack stands in for github.com/mwitkow/go-conntrack, by a replace directive in
// Drydock's go.work, and so in whatever is built in a checkout; `go install …@VERSION` takes the
// real one, which is only larger. Prometheus' HTTP client (prometheus/common/config) dials through
// it; the real one counts the connections in metrics that Drydock does not serve, and notes them
// for golang.org/x/net/trace's pages, which it does not serve either. But that package registers
// these pages when the program starts, and with them html/template, which calls methods by their
// names: then the linker must keep every exported method of every type, 25 MB of 65, and with them
// some 15 MB of resident memory. TestTheLinkerMayDropWhatNothingCalls in cmd/drydock says so if
// anything else brings this back.
//
// It has what prometheus/common uses. If that asks for more one day, the build fails and says what.
package conntrack

import (
	"context"
	"net"
)

// DialContextFunc opens a connection, as net.Dialer.DialContext does.
type DialContextFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// DialOption sets one property of NewDialContextFunc's dialler.
type DialOption func(*DialContextFunc)

// NewDialContextFunc returns the function of the last DialWithDialContextFunc, or that of a
// net.Dialer.
func NewDialContextFunc(options ...DialOption) DialContextFunc {
	dial := new(net.Dialer).DialContext
	for _, set := range options {
		set(&dial)
	}
	return dial
}

// DialWithDialContextFunc makes dial open the connections.
func DialWithDialContextFunc(dial DialContextFunc) DialOption {
	return func(d *DialContextFunc) { *d = dial }
}

// DialWithName changes nothing: the name is for the metrics.
func DialWithName(string) DialOption { return func(*DialContextFunc) {} }

// DialWithTracing changes nothing: there is no page for traces.
func DialWithTracing() DialOption { return func(*DialContextFunc) {} }
