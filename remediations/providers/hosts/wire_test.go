package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/testing/providertest"
)

// wire stands before the hosts of the conformance suite: it accepts connections, runs Debian's sshd
// on each, and decides the fate of each command. It is a providertest.Wire.
type wire struct {
	t         testing.TB
	sockets   net.Listener // of gates
	listeners []net.Listener
	running   sync.WaitGroup

	connects atomic.Int64
	overread atomic.Bool

	mu       sync.Mutex
	closed   bool
	links    map[string]*link
	gates    map[net.Conn]bool
	arrived  int
	requests []providertest.Request
	armed    []armedFault
	changed  chan struct{}
}

type armedFault struct {
	from, to int // to is exclusive; negative: no end
	fault    providertest.Fault
}

// link is one connection, and its sshd.
type link struct {
	conn net.Conn
	sshd *exec.Cmd
	// deaf: data from the client is not passed on.
	deaf atomic.Bool
	busy int // commands without an answer
}

func newWire(t testing.TB, dir string) *wire {
	t.Helper()
	w := &wire{t: t, links: map[string]*link{}, gates: map[net.Conn]bool{}, changed: make(chan struct{})}
	var err error
	w.sockets, err = net.Listen("unix", filepath.Join(dir, "gate"))
	require.NoError(t, err)
	w.running.Go(func() {
		for {
			c, err := w.sockets.Accept()
			if err != nil {
				return
			}
			w.running.Go(func() { w.attend(c) })
		}
	})
	return w
}

// serve runs an sshd of that configuration for each connection at the listener.
func (w *wire) serve(l net.Listener, config func() string) {
	w.listeners = append(w.listeners, l)
	w.running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			id := strconv.FormatInt(w.connects.Add(1), 10)
			w.running.Go(func() { w.speak(c, id, config()) })
		}
	})
}

// speak runs one sshd on one connection, until either of them ends.
func (w *wire) speak(c net.Conn, id, config string) {
	// Without its home the user's shell does not read the files there, which takes longer than all
	// the rest.
	cmd := exec.Command(sshd, "-i", "-f", config, "-o", "SetEnv="+gateConnection+"="+id+" HOME=/nonexistent")
	in, err := cmd.StdinPipe()
	if err == nil {
		cmd.Stdout = c
		l := &link{conn: c, sshd: cmd}
		w.mu.Lock()
		if w.closed {
			err = net.ErrClosed
		} else if err = cmd.Start(); err == nil {
			w.links[id] = l
		}
		w.mu.Unlock()
		if err == nil {
			w.running.Go(func() {
				_, _ = io.Copy(deafened{in, &l.deaf}, c)
				_ = in.Close()
				w.cut(id)
			})
			_ = cmd.Wait()
		}
	}
	_ = c.Close()
	w.cut(id)
}

// deafened reads the data that it does not pass on.
type deafened struct {
	io.Writer
	deaf *atomic.Bool
}

func (d deafened) Write(p []byte) (int, error) {
	if d.deaf.Load() {
		return len(p), nil
	}
	return d.Writer.Write(p)
}

// cut ends a connection, and everything that waits for an answer over it.
func (w *wire) cut(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.links[id]; l != nil {
		_ = l.conn.Close()
		_ = l.sshd.Process.Kill()
		delete(w.links, id)
	}
}

func (w *wire) cutAll() {
	w.mu.Lock()
	ids := make([]string, 0, len(w.links))
	for id := range w.links {
		ids = append(ids, id)
	}
	w.mu.Unlock()
	for _, id := range ids {
		w.cut(id)
	}
}

// attend sends one gate the fate of its command.
func (w *wire) attend(c net.Conn) {
	w.mu.Lock()
	w.gates[c] = true
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		delete(w.gates, c)
		w.mu.Unlock()
		_ = c.Close()
	}()
	to, from := json.NewEncoder(c), json.NewDecoder(c)
	var a arrival
	if from.Decode(&a) != nil {
		return
	}
	w.mu.Lock()
	n := w.arrived
	w.arrived++
	fault, faulty := w.faultOf(n)
	next, _ := w.faultOf(n + 1)
	l := w.links[a.Connection]
	if l != nil {
		l.busy++
	}
	w.mu.Unlock()
	if faulty && fault.Kind == providertest.Slow {
		time.Sleep(providertest.Slowly) // that is the fault
		faulty = false
	}
	var said string
	if to.Encode(order{fault, faulty}) != nil || from.Decode(&said) != nil {
		return
	}
	if next.Kind == providertest.Gone {
		w.goneAway(l)
	}
	w.mu.Lock()
	w.requests = append(w.requests, providertest.Request{Number: n, Changes: changesHost(a.Line), What: a.Line})
	close(w.changed)
	w.changed = make(chan struct{})
	w.mu.Unlock()
	if faulty && (fault.Kind == providertest.Cut || fault.Kind == providertest.Gone) {
		w.cut(a.Connection)
	}
	if to.Encode("answer") != nil {
		return
	}
	for from.Decode(&said) == nil { // until the gate ends
		switch said {
		case "cut":
			w.cut(a.Connection)
		case "overread":
			w.overread.Store(true)
		}
	}
	w.mu.Lock()
	if l != nil {
		l.busy--
	}
	w.mu.Unlock()
}

func changesHost(line string) bool {
	return strings.Contains(line, helper+" reboot ") || strings.Contains(line, helper+" sysrq ")
}

// goneAway accepts no connection any more. Over the existing link an answer still leaves, and
// nothing arrives.
func (w *wire) goneAway(l *link) {
	for _, listener := range w.listeners {
		_ = listener.Close()
	}
	if l != nil {
		l.deaf.Store(true)
	}
}

// faultOf returns the fault for the request of that number. The caller holds mu.
func (w *wire) faultOf(n int) (providertest.Fault, bool) {
	for _, a := range w.armed {
		if n >= a.from && (a.to < 0 || n < a.to) {
			return a.fault, true
		}
	}
	return providertest.Fault{}, false
}

func (w *wire) Misbehave(first, count int, f providertest.Fault) {
	w.mu.Lock()
	a := armedFault{from: w.arrived + first, to: -1, fault: f}
	if count >= 0 {
		a.to = a.from + count
	}
	w.armed = append(w.armed, a)
	w.mu.Unlock()
	if f.Kind == providertest.Gone && first == 0 {
		w.goneAway(nil)
		w.cutAll()
	}
}

func (w *wire) Requests() []providertest.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(slices.Values(w.requests), func(a, b providertest.Request) int { return a.Number - b.Number })
}

func (w *wire) Await(ctx context.Context, match func(providertest.Request) bool) bool {
	for {
		w.mu.Lock()
		there, changed := slices.ContainsFunc(w.requests, match), w.changed
		w.mu.Unlock()
		if there {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// Busy counts over the open connections: nothing waits over a closed one.
func (w *wire) Busy() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	busy := 0
	for _, l := range w.links {
		busy += l.busy
	}
	return busy
}

func (w *wire) Strays() int           { return 0 }
func (w *wire) Overread() bool        { return w.overread.Load() }
func (w *wire) Connects() (int, bool) { return int(w.connects.Load()), true }

// Close ends all of it.
func (w *wire) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.goneAway(nil)
	_ = w.sockets.Close()
	w.cutAll()
	w.mu.Lock()
	for c := range w.gates {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.running.Wait()
}

// gated is the program that sshd runs on a host in place of the script.
func (in installed) gated(t testing.TB, w *wire) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(in.dir, "gate")
	// With the race detector it would wait for a second before it ends.
	text := fmt.Sprintf("#!/bin/sh\nGORACE=atexit_sleep_ms=0 %s=%s %s=%s exec %s\n", gateSocket, w.sockets.Addr(), gateScript, in.script, self)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}
