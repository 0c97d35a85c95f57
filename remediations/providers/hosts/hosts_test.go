package hosts

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/providers/hosts/settings"
)

func newRSA(t *testing.T) ssh.Signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	signer, err := ssh.NewSignerFromKey(key)
	require.NoError(t, err)
	return signer
}

func requireFit(t *testing.T, text string) {
	t.Helper()
	require.True(t, utf8.ValidString(text))
	for _, r := range text {
		require.True(t, r == '\n' || unicode.IsGraphic(r), "%q", r)
	}
}

// TestNewNamesTheOptionThatIsWrong: the configuration checks what is not here.
func TestNewNamesTheOptionThatIsWrong(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for says, change := range map[string]func(*Options){
		`"kubelet"`:                  func(o *Options) { o.Units = []string{"kubelet"} },
		`"--all.service"`:            func(o *Options) { o.Units = []string{"--all.service"} },
		`"drydock-restart-a.service`: func(o *Options) { o.Units = []string{"drydock-restart-a.service"} },
		"the hold is 1.5s":           func(o *Options) { o.Hold = 1500 * time.Millisecond },
		"the hold is 11m":            func(o *Options) { o.Hold = 11 * time.Minute },
		"the SSH key file is not":    func(o *Options) { o.KeyFile = "" },
		"no such file":               func(o *Options) { o.KeyFile += "-not" },
		"the known_hosts file is":    func(o *Options) { o.KnownHostsFile = "" },
		"is a directory":             func(o *Options) { o.KnownHostsFile = t.TempDir() },
	} {
		o := s.options
		change(&o)
		_, err := New(o)
		require.ErrorContains(t, err, says)
	}
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(mustKey(t), "", []byte("secret"))
	require.NoError(t, err)
	big := filepath.Join(t.TempDir(), "big")
	for says, content := range map[string][]byte{"has a passphrase": pem.EncodeToMemory(locked), "longer than": []byte(strings.Repeat("x", maxKey+1))} {
		require.NoError(t, os.WriteFile(big, content, 0o600))
		o := s.options
		o.KeyFile = big
		_, err := New(o)
		require.ErrorContains(t, err, says)
	}
}

func mustKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	return key
}

func TestStatusIsWhatSystemdSays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.client(t)
	for state, active := range map[string]bool{"active/running": true, "activating/auto-restart": false, "failed/failed": false, "inactive/dead": false} {
		s.set(func() { s.state = state })
		got, err := c.Status(t.Context(), s.host, "kubelet.service")
		require.NoError(t, err)
		require.Equal(t, Status{Loaded: true, Active: active, State: state, InvocationID: "00000000000000000000000000000001"}, got)
	}
	s.set(func() { s.restarting = "a-1-1" })
	got, err := c.Status(t.Context(), s.host, "kubelet.service")
	require.NoError(t, err)
	require.Equal(t, "a-1-1", got.Restarting)
}

func TestAnAnswerThatIsNotSystemdsIsAnError(t *testing.T) {
	t.Parallel()
	unit := "LoadState=loaded\nActiveState=active\nSubState=running\nInvocationID=\n"
	for _, said := range []string{
		"", "Welcome!", unit, unit + "\n" + unit + "\n" + unit, "Welcome!\n\n" + unit + "\n" + unit,
		strings.Replace(unit, "active", "act ive", 1) + "\n" + unit, unit + "\n" + strings.Replace(unit, "loaded", "", 1),
		strings.Replace(unit, "ID=", "ID=<b>", 1) + "\n" + unit,
	} {
		s := newSite(t)
		s.answers = func(_ string, ch ssh.Channel) (int, bool) {
			_, _ = ch.Write([]byte(said))
			return 0, true
		}
		_, err := s.client(t).Status(t.Context(), s.host, "kubelet.service")
		require.ErrorContains(t, err, "check the systemctl on the host", said)
	}
}

func TestCommandsForOneHostGoOneAfterTheOtherOverOneConnection(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.client(t)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_, err := c.Status(t.Context(), s.host, "kubelet.service")
			require.NoError(t, err)
		})
	}
	all.Wait()
	require.EqualValues(t, 1, s.accepted.Load())
	c.Close()
	require.Eventually(t, func() bool { return s.closed.Load() == 1 }, time.Minute, time.Millisecond)
	require.Empty(t, c.lines)
	_, err := c.Status(t.Context(), s.host, "kubelet.service")
	require.NoError(t, err, "it can be used on")
}

func TestAConnectionThatIsNotUsedEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.options.Keep = 50 * time.Millisecond
	c := s.client(t)
	s.welcomedBy(t, c)
	require.Eventually(t, func() bool { return s.closed.Load() == 1 }, time.Minute, time.Millisecond)
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Empty(t, c.lines)
}

// A goroutine that waits for a line already holds it, and a forgotten line does not affect the line
// that came after it.
func TestALineThatACallerWaitsForIsKept(t *testing.T) {
	t.Parallel()
	c := newSite(t).client(t)
	lineOf := func(users int) *line {
		return &line{client: c, name: "cp-1", users: users, turn: semaphore.NewWeighted(1)}
	}
	waited := lineOf(1)
	c.lines["cp-1"] = waited
	waited.hangUpIfIdle()
	lineOf(0).hangUpIfIdle()
	require.Same(t, waited, c.lines["cp-1"])
}

func (s *site) welcomedBy(t *testing.T, c *Client) {
	t.Helper()
	_, err := c.Status(t.Context(), s.host, "kubelet.service")
	require.NoError(t, err)
}

// A machine that loses its power drops the connection without a message, and no longer knows it
// when it is back.
func TestADeadConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.client(t)
	s.welcomedBy(t, c)
	s.cutAll()
	s.welcomedBy(t, c)
	require.EqualValues(t, 2, s.accepted.Load())

	silent := newSilencer(t, s)
	s.options.Port = silent.port
	s.know(t, "cp-1", s.hostKey.PublicKey())
	c = s.client(t)
	s.welcomedBy(t, c)
	silent.deaf()
	began := time.Now()
	s.welcomedBy(t, c)
	require.Less(t, time.Since(began), 3*maxPing)
}

func TestAConnectionToAnAddressThatIsNotTheHostsAnyMoreIsNotUsed(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.client(t)
	s.welcomedBy(t, c)
	s.host.Addresses = []string{"127.0.0.2"}
	_, err := c.Status(t.Context(), s.host, "kubelet.service")
	require.ErrorIs(t, err, ErrUnreachable)
}

func TestAddressesAreTriedInOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for _, first := range []string{"127.0.0.2", deaf(t, s.options.Port)} { // one refuses, the other never answers
		s.host.Addresses = []string{first, "127.0.0.1"}
		s.welcomedBy(t, s.client(t))
	}
	s.options.Timeout = 10 * time.Minute
	began := time.Now()
	s.welcomedBy(t, s.client(t))
	require.Less(t, time.Since(began), s.options.Timeout/4, "an address that does not answer has no share that it could use up")
	s.host.Addresses = []string{"127.0.0.2", "127.0.0.4"}
	_, err := s.client(t).Status(t.Context(), s.host, "kubelet.service")
	require.ErrorIs(t, err, ErrUnreachable)
	require.ErrorContains(t, err, "127.0.0.2")
	require.ErrorContains(t, err, "127.0.0.4")
}

// deaf returns a loopback address whose port neither accepts nor refuses a connection.
func deaf(t *testing.T, port int) string {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Close(fd) })
	require.NoError(t, syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 3}}))
	require.NoError(t, syscall.Listen(fd, 0))
	for range 4 { // until its queue is full
		conn, err := net.DialTimeout("tcp", (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 3), Port: port}).String(), 100*time.Millisecond)
		if err != nil {
			break
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	return "127.0.0.3"
}

// silencer passes connections on until the test makes it drop all data of the present ones.
type silencer struct {
	port  int
	mu    sync.Mutex
	quiet chan struct{}
}

func newSilencer(t *testing.T, s *site) *silencer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	out := &silencer{port: listener.Addr().(*net.TCPAddr).Port, quiet: make(chan struct{})}
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", s.listener.Addr().String())
			if err != nil {
				_ = near.Close()
				continue
			}
			out.mu.Lock()
			quiet := out.quiet
			out.mu.Unlock()
			for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
				go func() {
					buf := make([]byte, 32<<10)
					for {
						n, err := way[0].Read(buf)
						select {
						case <-quiet: // the data is lost, and neither side learns that the other has gone
						default:
							_, _ = way[1].Write(buf[:n])
							if err != nil {
								_ = way[1].Close()
							}
						}
						if err != nil {
							return
						}
					}
				}()
			}
		}
	}()
	return out
}

func (s *silencer) deaf() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.quiet)
	s.quiet = make(chan struct{})
}

func TestTheHostOfANodeIsAtItsAddresses(t *testing.T) {
	t.Parallel()
	types := []corev1.NodeAddressType{corev1.NodeInternalIP, corev1.NodeExternalIP}
	node := func(name string, addresses ...corev1.NodeAddress) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Addresses: addresses}}
	}
	in := func(a string) corev1.NodeAddress { return corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a} }
	out := func(a string) corev1.NodeAddress { return corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: a} }

	h, err := ofNode(node("n1", out("203.0.113.7"), in("192.0.2.7"), in("2001:DB8::7"), in("192.0.2.7"), corev1.NodeAddress{Type: corev1.NodeHostName, Address: "192.0.2.9"}), types)
	require.NoError(t, err)
	require.Equal(t, Host{Name: "n1", Addresses: []string{"192.0.2.7", "2001:db8::7", "203.0.113.7"}}, h)

	h, err = ofNode(node("n1", in("n1.example.com"), in("-oProxyCommand=id"), in("0.0.0.0"), in("224.0.0.1"), in("fe80::1%eth0"), in("1.2.3.4")), types)
	require.NoError(t, err)
	require.Equal(t, []string{"1.2.3.4"}, h.Addresses)

	h, err = ofNode(node("n1", in("192.0.2.1"), in("192.0.2.2"), in("192.0.2.3"), in("192.0.2.4"), in("192.0.2.5")), types)
	require.NoError(t, err)
	require.Len(t, h.Addresses, settings.MaxAddresses)

	for _, n := range []*corev1.Node{node("n1"), node("n1", in("n1")), node("N1 x", in("192.0.2.1")), node("", in("192.0.2.1"))} {
		_, err = ofNode(n, types)
		require.Error(t, err)
	}
	_, err = ofNode(node("n1", out("203.0.113.7")), types[:1])
	require.ErrorContains(t, err, "the host has no address")
}
