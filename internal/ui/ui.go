package ui

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"drydock.dev/drydock/internal/httpserver"
	"drydock.dev/drydock/internal/inspect"
)

// Options is what the page needs from the command.
type Options struct {
	// Reader reads with the user's own rights. The pages use its clock, too.
	Reader *inspect.Reader
	// Token admits a browser once. FileToken admits the browser that was started with the file of
	// OpeningFile; empty: there is no file.
	Token, FileToken string
	// Entered is called when a browser was admitted, with the token that replaces Token; empty:
	// Token is still valid. It may be nil.
	Entered func(next string)
	// ReadOnly: the page changes nothing.
	ReadOnly bool
	// Commands adds the flags that name the cluster to the commands on the page.
	Commands inspect.Commands
	// Sources are what a node's page reads besides the API server, as in `kubectl drydock why`.
	Sources inspect.Sources
	// After makes the pages' timers.
	After func(time.Duration) <-chan time.Time
	Log   logr.Logger
}

// NewToken returns a token that cannot be guessed.
func NewToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // cannot fail: it ends the process instead
	return hex.EncodeToString(b)
}

// UI serves the pages. It has data only while Run runs.
type UI struct {
	Options
	fleet *fleet
	link  *link
	door  *door
	// templates are the pages' templates, by name. common are those that every page uses.
	templates map[string]*template.Template
	common    *template.Template
	// clicks are the tries that people may write.
	clicks clicks
	// epoch identifies this process, so that a page of an earlier process is loaded again.
	epoch string
	// done is closed when Run ends, which ends every stream.
	done chan struct{}
}

// New makes the pages.
func New(o Options) *UI {
	u := &UI{Options: o, fleet: newFleet(), epoch: NewToken()[:12], done: make(chan struct{})}
	reader := *o.Reader
	reader.Known = u.fleet.known
	u.Reader = &reader
	u.link = &link{now: o.Reader.Now, lost: map[string]string{}, missing: map[string]string{}, notify: u.fleet.connect, first: make(chan struct{}), awaited: map[string]bool{nodesSource: true, ledgerSource: true}}
	u.fleet.ledger = inspect.Ledger{Name: o.Reader.Ledger, Problem: "it was not read yet"}
	u.door = newDoor(o.Token, u.routes(), u.refuse)
	u.door.fileToken, u.door.entered = o.FileToken, o.Entered
	u.common, u.templates = u.parse()
	return u
}

// ServeHTTP admits a request at the door, and answers it.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) { u.door.ServeHTTP(w, r) }

// Run watches until ctx ends. It may be called once.
func (u *UI) Run(ctx context.Context) {
	defer close(u.done)
	var all sync.WaitGroup
	for _, watch := range []func(context.Context){u.watchNodes, u.watchLedger, u.ask} {
		all.Go(func() { watch(ctx) })
	}
	all.Wait()
}

// limits fit one user's browser.
var limits = httpserver.Limits{
	Connections: 64, Kept: 32, Patience: time.Second, Bodies: true, HeaderBytes: 16 << 10,
	Header: 5 * time.Second, Read: 10 * time.Second, Write: connectionWithin, Idle: 2 * time.Minute,
}

// stopWithin is how long a running request may take when the user ends the command.
const stopWithin = time.Second

// Listen opens a port on loopback only. Zero: any free port.
func Listen(ctx context.Context, port int) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if err != nil {
		return nil, fmt.Errorf("opening the page's port: %w; choose another one with --port", err)
	}
	return l, nil
}

// Address returns the address that the user opens.
func Address(l net.Listener, token string) string {
	return fmt.Sprintf("http://%s/?%s=%s", l.Addr(), TokenParameter, token)
}

// OpeningFile writes a page that leads to this one and that only this user can read: every user of
// the machine can read the arguments of a browser that is started with an address. remove deletes
// the file.
func OpeningFile(l net.Listener, fileToken string) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "kubectl-drydock-") // with mode 0700
	if err != nil {
		return "", nil, fmt.Errorf("making the file that opens the page: %w", err)
	}
	remove = func() { _ = os.RemoveAll(dir) }
	path = filepath.Join(dir, "open.html")
	if err := os.WriteFile(path, []byte(onward(fmt.Sprintf("http://%s/?%s=%s", l.Addr(), fileParameter, fileToken))), 0o600); err != nil {
		remove()
		return "", nil, fmt.Errorf("making the file that opens the page: %w", err)
	}
	return path, remove, nil
}

// Serve watches, and serves on the listener, until ctx ends.
func (u *UI) Serve(ctx context.Context, l net.Listener) error {
	server := httpserver.New("the page", u, limits, u.Log)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() { defer close(watched); u.Run(ctx) }()
	err := server.Serve(ctx, server.Limit(l, nil), stopWithin, func() {})
	cancel()
	<-watched
	return err //nolint:wrapcheck // it names the port already
}
