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

// Options are what the command gives to the page.
type Options struct {
	// Reader reads with the user's own rights. The pages also use its clock.
	Reader *inspect.Reader
	// Token admits a browser once. FileToken admits the one that was started with the file of
	// OpeningFile. It is empty without such a file.
	Token, FileToken string
	// Entered is called when a browser was admitted. next replaces Token, or is empty if Token is
	// still valid. Entered may be nil.
	Entered func(next string)
	// ReadOnly makes the page refuse all changes.
	ReadOnly bool
	// Commands adds the flags that name the cluster to the commands on the page.
	Commands inspect.Commands
	// Sources are those of `kubectl drydock why`.
	Sources inspect.Sources
	// After is time.After. Tests replace it.
	After func(time.Duration) <-chan time.Time
	Log   logr.Logger
}

// NewToken returns a token that cannot be guessed.
func NewToken() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never returns an error: it would end the process
	return hex.EncodeToString(b)
}

// UI serves the pages. It has data only while Run runs.
type UI struct {
	Options
	fleet     *fleet
	link      *link
	door      *door
	templates map[string]*template.Template
	common    *template.Template
	clicks    clicks
	// epoch identifies this process. A page of an earlier process loads itself again.
	epoch string
	// done is closed when Run ends. That ends every stream.
	done chan struct{}
}

// New makes a UI.
func New(o Options) *UI {
	u := &UI{Options: o, fleet: newFleet(), epoch: NewToken()[:12], done: make(chan struct{})}
	reader := *o.Reader
	reader.Known = u.fleet.known
	u.Reader = &reader
	u.link = &link{now: o.Reader.Now, lost: map[string]string{}, missing: map[string]string{}, notify: u.fleet.connect, first: make(chan struct{}), awaited: map[string]bool{nodesSource: true, ledgerSource: true}}
	u.fleet.ledger = inspect.Ledger{Name: o.Reader.Ledger, Problem: "the ledger was not read yet"}
	u.door = newDoor(o.Token, u.routes(), u.refuse)
	u.door.fileToken, u.door.entered = o.FileToken, o.Entered
	u.common, u.templates = u.parse()
	return u
}

// ServeHTTP checks that the request comes from the user's own browser, and answers it.
func (u *UI) ServeHTTP(w http.ResponseWriter, r *http.Request) { u.door.ServeHTTP(w, r) }

// Run watches the cluster until ctx ends. It may be called only once.
func (u *UI) Run(ctx context.Context) {
	defer close(u.done)
	var all sync.WaitGroup
	for _, watch := range []func(context.Context){u.watchNodes, u.watchLedger, u.ask} {
		all.Go(func() { watch(ctx) })
	}
	all.Wait()
}

var limits = httpserver.Limits{
	Connections: 64, Kept: 32, Patience: time.Second, Bodies: true, HeaderBytes: 16 << 10,
	Header: 5 * time.Second, Read: 10 * time.Second, Write: connectionWithin, Idle: 2 * time.Minute,
}

const stopWithin = time.Second

// Listen opens a port on loopback only. 0 means any free port.
func Listen(ctx context.Context, port int) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", fmt.Sprint(port)))
	if err != nil {
		return nil, fmt.Errorf("opening the page's port: %w; choose another one with --port", err)
	}
	return l, nil
}

// Address returns the address that the user opens.
func Address(l net.Listener, token string) string {
	return fmt.Sprintf("http://%s/?%s=%s", l.Addr(), tokenParameter, token)
}

// OpeningFile writes a file that opens the page and that only this user can read. The browser gets
// the file, because every user of the machine can read a program's arguments, and the address
// contains a token.
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

// Serve watches the cluster and serves on the listener until ctx ends.
func (u *UI) Serve(ctx context.Context, l net.Listener) error {
	server := httpserver.New("the page", u, limits, u.Log)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watched := make(chan struct{})
	go func() { defer close(watched); u.Run(ctx) }()
	err := server.Serve(ctx, server.Limit(l, nil), stopWithin, func() {})
	cancel()
	<-watched
	return err //nolint:wrapcheck // the error already names the port
}
