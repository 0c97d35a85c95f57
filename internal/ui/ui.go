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

// Options are what the page needs from the command.
type Options struct {
	// Reader reads with the user's own rights. Its clock is the pages', too.
	Reader *inspect.Reader
	// Token lets a browser in, once, and FileToken the browser that is started with the file of OpeningFile; empty: there is no file.
	Token, FileToken string
	// Entered is told that a browser was let in, with the token that replaces Token; empty: Token is still good. It may be nil.
	Entered func(next string)
	// ReadOnly: the page changes nothing.
	ReadOnly bool
	// Commands are those that the page shows, with the flags that name its cluster.
	Commands inspect.Commands
	// Sources are where a node's page looks beside the API server, as `kubectl drydock why` does.
	Sources inspect.Sources
	// After is how the pages wait.
	After func(time.Duration) <-chan time.Time
	Log   logr.Logger
}

// NewToken makes a token that nobody can guess.
func NewToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // it never fails: it ends the process instead
	return hex.EncodeToString(b)
}

// UI serves the pages. It knows something only while Run runs.
type UI struct {
	Options
	fleet *fleet
	link  *link
	door  *door
	// templates are those of each page, by its name, common those that every page has.
	templates map[string]*template.Template
	common    *template.Template
	// clicks are what people tried, and may write.
	clicks clicks
	// epoch names this process, so that a page of an earlier one is loaded again.
	epoch string
	// done is closed when Run ends: every stream ends with it.
	done chan struct{}
}

// New makes the pages.
func New(o Options) *UI {
	u := &UI{Options: o, fleet: newFleet(), epoch: NewToken()[:12], done: make(chan struct{})}
	reader := *o.Reader
	reader.Known = u.fleet.known
	u.Reader = &reader
	u.link = &link{now: o.Reader.Now, lost: map[string]string{}, missing: map[string]string{}, tell: u.fleet.connect, first: make(chan struct{}), awaited: map[string]bool{nodesSource: true, ledgerSource: true}}
	u.fleet.ledger = inspect.Ledger{Name: o.Reader.Ledger, Problem: "it was not read yet"}
	u.door = newDoor(o.Token, u.routes(), u.refuse)
	u.door.fileToken, u.door.entered = o.FileToken, o.Entered
	u.common, u.templates = u.parse()
	return u
}

// ServeHTTP lets a request in at the door, and answers it.
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

// limits are for one user's browser.
var limits = httpserver.Limits{
	Connections: 64, Kept: 32, Patience: time.Second, Bodies: true, HeaderBytes: 16 << 10,
	Header: 5 * time.Second, Read: 10 * time.Second, Write: connectionWithin, Idle: 2 * time.Minute,
}

// stopWithin is how long a request may take that is under way when the user ends the command.
const stopWithin = time.Second

// Listen opens a port on loopback alone; 0: any that is free.
func Listen(ctx context.Context, port int) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if err != nil {
		return nil, fmt.Errorf("opening the page's port: %w; choose another one with --port", err)
	}
	return l, nil
}

// Address is what the user opens.
func Address(l net.Listener, token string) string {
	return fmt.Sprintf("http://%s/?%s=%s", l.Addr(), TokenParameter, token)
}

// OpeningFile writes a page that goes on to this one, which only this user can read: the arguments of a browser that is started with an
// address can be read by every user of the machine. remove takes it away.
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
