package http

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	promconfig "github.com/prometheus/common/config"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations/providers/http/settings"
)

const (
	token  = `bearer-horse+battery/"staple"<&>`
	secret = "signing-key-of-the-tests"
)

// box is one of the receiver's machines.
type box struct {
	id, node, machine string
	job, attempt      string
	successors        []string
}

// receiver is an outside program with machines. It refuses an attempt that it has accepted already.
type receiver struct {
	t     testing.TB
	mu    sync.Mutex
	boxes []*box
	// done are the machines that it acted on, taken the attempts, seen all documents with their
	// headers.
	done  []string
	taken map[string]bool
	seen  []seen
	// cannot is why the machine of that node cannot be acted on.
	cannot map[string]string
}

type seen struct {
	path   string
	header http.Header
	body   []byte
}

func newReceiver(t testing.TB) *receiver {
	return &receiver{t: t, taken: map[string]bool{}, cannot: map[string]string{}, boxes: []*box{
		{id: "rack://1", node: "node-1", machine: running}, {id: "rack://2", node: "node-2", machine: running},
	}}
}

// set replaces all machines.
func (r *receiver) set(boxes ...*box) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.boxes = boxes
}

func (r *receiver) acted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.done)
}

func (r *receiver) got() []seen {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.seen)
}

// find returns the only machine with the Node's name and provider ID.
func (r *receiver) find(d document) (*box, string) {
	var found []*box
	for _, b := range r.boxes {
		if b.node == d.Node && (d.ProviderID == "" || b.id == d.ProviderID) {
			found = append(found, b)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Sprintf("%d machines are node %s with the ID %s", len(found), d.Node, d.ProviderID)
	}
	return found[0], ""
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	body, _ := io.ReadAll(req.Body)
	r.seen = append(r.seen, seen{req.URL.Path, req.Header.Clone(), body})
	answer := func(status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v)
	}
	say := func(status int, text string) { answer(status, map[string]string{"message": text}) }
	var d document
	if err := json.Unmarshal(body, &d); err != nil {
		say(400, err.Error())
		return
	}
	if "Bearer "+token != req.Header.Get("Authorization") {
		say(401, "who are you?")
		return
	}
	b, why := r.find(d)
	if b == nil {
		say(404, why)
		return
	}
	if d.Action == observe {
		o := map[string]any{"uid": d.UID, "can": []string{"reboot", "powerOff", "replace"}, "machine": b.machine, "successors": b.successors}
		if why := r.cannot[d.Node]; why != "" {
			o["can"], o["message"] = []string{}, why
		}
		if b.job != "" {
			o["job"] = map[string]string{"state": b.job, "attempt": b.attempt, "message": "step 3 of 5"}
		}
		answer(200, o)
		return
	}
	switch {
	case r.cannot[d.Node] != "":
		say(422, r.cannot[d.Node])
	case r.taken[d.Attempt]:
		say(409, "this attempt was taken already") // Drydock sends none twice, and the suite counts successes
	case b.job == working:
		say(409, "a job is at work")
	default:
		r.taken[d.Attempt], r.done = true, append(r.done, b.id)
		say(202, "on its way")
	}
}

// certificate is the test server's certificate, and the file with its authority.
var certificate = sync.OnceValues(func() (*tls.Config, *x509.Certificate) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return s.TLS, s.Certificate()
})

func file(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// client is a client of the receiver at that address, with a token, a key and the test server's
// authority. without names actions to leave out.
func client(t testing.TB, url string, timeout time.Duration, without ...string) *Client {
	t.Helper()
	cfg := promconfig.DefaultHTTPClientConfig
	cfg.Authorization = &promconfig.Authorization{Type: "Bearer", CredentialsFile: file(t, "token", token+"\n")}
	if strings.HasPrefix(url, "https") {
		_, leaf := certificate()
		cfg.TLSConfig = promconfig.TLSConfig{CA: string(pemOf(leaf))}
	}
	o := settings.HTTP{SigningKeyFile: file(t, "key", secret), HTTPConfig: cfg, Timeout: timeout}
	for action, place := range map[string]**settings.Place{"reboot": &o.Reboot, "powerOff": &o.PowerOff, "replace": &o.Replace, observe: &o.Observe} {
		if !slices.Contains(without, action) {
			*place = &settings.Place{URL: url + "/" + action}
		}
	}
	c, err := New(o)
	require.NoError(t, err)
	return c
}

// receiving is a receiver over plain HTTP, and its client.
func receiving(t testing.TB, without ...string) (*receiver, *Client) {
	t.Helper()
	r := newReceiver(t)
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return r, client(t, server.URL, time.Minute, without...)
}
