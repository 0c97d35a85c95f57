package hosts

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"drydock.dev/drydock/remediations/providers/hosts/settings"
)

// stage is a point of a connection at which a server of the tests goes wrong.
type stage string

const (
	atBanner  stage = "banner"       // the connection is accepted, and neither side speaks
	atKeys    stage = "key exchange" // it sends its version, and no more
	atAuth    stage = "authentication"
	atSession stage = "session"
	atRequest stage = "request" // the command has arrived, and its execution is not confirmed
	atCommand stage = "command" // it runs, and does not end
	nowhereAt stage = ""
)

// server is an sshd in this process, with a systemd of its own behind it.
type server struct {
	t        *testing.T
	listener net.Listener
	config   *ssh.ServerConfig
	*machine

	mu sync.Mutex
	// hangs and cuts are the stages that fail; cuts applies to that many connections.
	hangs, cuts stage
	cutsLeft    int
	refuses     bool // it refuses to execute anything
	// answers, if set, replaces the machine.
	answers func(line string, ch ssh.Channel) (code int, exits bool)
	lines   []string
	conns   []net.Conn

	accepted, closed atomic.Int32
}

// machine is the state of its systemd.
type machine struct {
	mu         sync.Mutex
	load       string
	state      string
	invocation int
	restarting string
	// stuck: restarts are accepted and do not happen.
	stuck    bool
	restarts []string // the attempts
	journal  string
}

func newMachine() *machine {
	return &machine{load: "loaded", state: "active/running", invocation: 1, journal: "2026-11-21T12:00:00+0000 cp-1 kubelet[7]: it is stuck\n"}
}

var restartLine = regexp.MustCompile(`^(?:sudo -n )?/usr/bin/systemd-run --unit=drydock-restart-(\S+) --description=drydock:(\S+) --collect --no-block ` +
	`--property=Type=oneshot '--property=ExecStartPre=-/usr/bin/systemctl restart (\S+)' /usr/bin/sleep (\d+)$`)

// execute returns systemd's answer to a command, in the form of a real one.
func (m *machine) execute(line string) (stdout, stderr string, code int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case strings.Contains(line, "systemctl show"):
		active, sub, _ := strings.Cut(m.state, "/")
		invocation := fmt.Sprintf("%032x", m.invocation)
		if m.invocation < 0 {
			invocation = ""
		}
		restart := "Description=drydock-restart-kubelet.service\nLoadState=not-found\nActiveState=inactive\nSubState=dead\nInvocationID=\n"
		if m.restarting != "" {
			restart = "Description=drydock:" + m.restarting + "\nLoadState=loaded\nActiveState=activating\nSubState=start\nInvocationID=0123456789abcdef0123456789abcdef\n"
		}
		return fmt.Sprintf("Description=kubelet\nLoadState=%s\nActiveState=%s\nSubState=%s\nInvocationID=%s\n\n%s", m.load, active, sub, invocation, restart), "", 0
	case strings.Contains(line, "journalctl"):
		return m.journal, "", 0
	}
	found := restartLine.FindStringSubmatch(line)
	if found == nil {
		return "", "sh: 1: what? " + line, 127
	}
	if m.restarting != "" {
		return "", "Failed to start transient service unit: Unit drydock-restart-kubelet.service was already loaded or has a fragment file.", 1
	}
	m.restarting = found[2]
	m.restarts = append(m.restarts, found[2])
	if !m.stuck {
		m.invocation++
	}
	return "", "Running as unit: drydock-restart-kubelet.service", 0
}

func (m *machine) set(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
}

func (m *machine) attempts() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.restarts...)
}

func newSigner(t *testing.T) (ssh.Signer, []byte) {
	t.Helper()
	return makeKey()
}

func makeKey() (ssh.Signer, []byte) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		panic(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		panic(err)
	}
	return signer, pem.EncodeToMemory(block)
}

// site is a host of the tests, with a client that knows it.
type site struct {
	*server
	options Options
	host    Host
	hostKey ssh.Signer
}

// newSite starts a server on a loopback address, and writes the files of a client that knows it.
func newSite(t *testing.T, adjust ...func(*site)) *site {
	t.Helper()
	dir := t.TempDir()
	user, pemKey := newSigner(t)
	s := &site{host: Host{Name: "cp-1", Addresses: []string{"127.0.0.1"}}}
	s.hostKey, _ = newSigner(t)
	s.server = &server{t: t, machine: newMachine()}
	s.config = &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if s.wrong(atAuth) {
			<-t.Context().Done()
		}
		if string(key.Marshal()) != string(user.PublicKey().Marshal()) {
			return nil, fmt.Errorf("not this one")
		}
		return nil, nil //nolint:nilnil // that is how it says yes
	}}
	s.options = Options{Hosts: settings.Hosts{
		User: "drydock", KeyFile: filepath.Join(dir, "key"), KnownHostsFile: filepath.Join(dir, "known_hosts"), Sudo: true,
		Units: []string{"kubelet.service"}, Timeout: 2 * time.Minute,
	}}
	require.NoError(t, os.WriteFile(s.options.KeyFile, pemKey, 0o600))
	var err error
	s.listener, err = net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.options.Port = s.listener.Addr().(*net.TCPAddr).Port
	s.know(t, "cp-1", s.hostKey.PublicKey())
	for _, f := range adjust {
		f(s)
	}
	s.config.AddHostKey(s.hostKey)
	go s.serve()
	t.Cleanup(func() { _ = s.listener.Close(); s.cutAll() })
	return s
}

// know writes a known_hosts file of one line.
func (s *site) know(t *testing.T, name string, key ssh.PublicKey) {
	t.Helper()
	s.knowLine(t, knownhosts.Line([]string{net.JoinHostPort(name, fmt.Sprint(s.options.Port))}, key))
}

func (s *site) knowLine(t *testing.T, lines ...string) {
	t.Helper()
	require.NoError(t, os.WriteFile(s.options.KnownHostsFile, []byte("# ours\n"+strings.Join(lines, "\n")+"\n"), 0o600))
}

func (s *site) client(t *testing.T) *Client {
	t.Helper()
	c, err := New(s.options)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

func (s *server) serve() {
	for {
		raw, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.accepted.Add(1)
		s.mu.Lock()
		s.conns = append(s.conns, raw)
		s.mu.Unlock()
		go func() {
			s.speak(raw)
			_ = raw.Close()
			s.closed.Add(1)
		}()
	}
}

// wrong hangs or cuts at a stage; true: it hangs.
func (s *server) wrong(at stage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cuts == at && s.cutsLeft > 0 {
		s.cutsLeft--
		for _, c := range s.conns {
			_ = c.Close()
		}
	}
	return s.hangs == at
}

func (s *server) cutAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.conns {
		_ = c.Close()
	}
}

func (s *server) setWrong(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// wait reads until the other side has gone.
func wait(c net.Conn) {
	buf := make([]byte, 1024)
	for {
		if _, err := c.Read(buf); err != nil {
			return
		}
	}
}

func (s *server) speak(raw net.Conn) {
	if s.wrong(atBanner) {
		wait(raw)
		return
	}
	if s.wrong(atKeys) {
		_, _ = raw.Write([]byte("SSH-2.0-hung\r\n"))
		wait(raw)
		return
	}
	conn, channels, requests, err := ssh.NewServerConn(raw, s.config)
	if err != nil {
		return
	}
	go func() {
		for r := range requests {
			_ = r.Reply(false, nil)
		}
	}()
	go func() {
		for ch := range channels {
			if s.wrong(atSession) {
				continue
			}
			channel, in, err := ch.Accept()
			if err != nil {
				continue
			}
			go s.session(channel, in)
		}
	}()
	_ = conn.Wait()
}

func (s *server) session(ch ssh.Channel, in <-chan *ssh.Request) {
	for r := range in {
		if r.Type != "exec" {
			_ = r.Reply(false, nil)
			continue
		}
		var payload struct{ Command string }
		_ = ssh.Unmarshal(r.Payload, &payload)
		s.mu.Lock()
		s.lines = append(s.lines, payload.Command)
		answers, refuses := s.answers, s.refuses
		s.mu.Unlock()
		if refuses {
			_ = r.Reply(false, nil)
			continue
		}
		if s.wrong(atRequest) {
			continue
		}
		_ = r.Reply(true, nil)
		if answers != nil {
			if code, exits := answers(payload.Command, ch); exits {
				s.exit(ch, code)
			}
			continue
		}
		if s.wrong(atCommand) {
			continue
		}
		stdout, stderr, code := s.execute(payload.Command)
		_, _ = ch.Write([]byte(stdout))
		_, _ = ch.Stderr().Write([]byte(stderr))
		s.exit(ch, code)
	}
}

func (s *server) exit(ch ssh.Channel, code int) {
	_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{uint32(code)}))
	_ = ch.Close()
}

func (s *server) received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.lines...)
}

// sentRestarts returns the number of restarts that arrived, whatever their outcome.
func (s *server) sentRestarts() int {
	n := 0
	for _, l := range s.received() {
		if restartLine.MatchString(l) {
			n++
		}
	}
	return n
}

func may() error { return nil }
