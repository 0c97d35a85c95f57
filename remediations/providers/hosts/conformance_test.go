package hosts

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/hosts/settings"
	"drydock.dev/drydock/remediations/testing/providertest"
)

// TestRebootConformance tests the reboot against the contract of all providers, over Debian's sshd
// and with the shipped script.
func TestRebootConformance(t *testing.T) {
	needSSHD(t)
	const (
		byKey = "a key is refused when a session begins, before any command: TestOverARealSSHDWithTheShippedScript"
		later = "a host asks nobody to come later"
		alike = "a host has no statuses: 400 is a command that the script refuses, 500 one that ends with an exit code that says nothing"
	)
	without := map[string]string{
		"testimony": "SSH does not say whether a machine has power", "replacement": "nothing is replaced",
		"answer 401": byKey, "answer 403": byKey, "answer 429": later, "answer 503": later, "answer 503 after the work": later,
		"answer 404": alike, "answer 409": alike, "answer 412": alike, "answer 502": alike, "answer 504": alike,
		"answer 502 after the work": alike, "answer 504 after the work": alike,
	}
	for _, status := range []int{200, 401, 403, 404, 502} {
		without[fmt.Sprintf("page %d", status)] = "no proxy answers in a host's place: its key is known"
		without[fmt.Sprintf("page %d after the work", status)] = "no proxy answers in a host's place: its key is known"
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		without[fmt.Sprintf("redirect %d", status)] = "SSH has no redirects"
		without[fmt.Sprintf("redirect to itself %d after the work", status)] = "SSH has no redirects"
	}
	providertest.Run(t, providertest.Provider{PerMachine: true, DoesNotApply: without, Start: startHosts})
}

// twoNodes are the Nodes of the suite.
type twoNodes struct {
	mu  sync.Mutex
	all map[string]*corev1.Node
}

func (n *twoNodes) Get(_ context.Context, name string, _ metav1.GetOptions) (*corev1.Node, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if node := n.all[name]; node != nil {
		return node.DeepCopy(), nil
	}
	return nil, fmt.Errorf("there is no node %q", name)
}

func (n *twoNodes) set(name string, change func(map[string]*corev1.Node)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n.all)
}

// theKeys are the keys of the user and of both hosts: made once, since no case depends on them.
var theKeys = sync.OnceValue(func() (out [3]struct {
	signer ssh.Signer
	pem    []byte
}) {
	for i := range out {
		out[i].signer, out[i].pem = makeKey()
	}
	return out
})

// startHosts starts two hosts at two addresses of the loopback interface, each with its sshd.
func startHosts(t testing.TB, timeout time.Duration) providertest.World {
	dir := t.TempDir()
	w := newWire(t, dir)
	me, err := user.Current()
	require.NoError(t, err)
	keys := theKeys()
	config := net.ListenConfig{}
	first, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := first.Addr().(*net.TCPAddr).Port
	second, err := config.Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.2:%d", port))
	require.NoError(t, err)
	listeners := []net.Listener{first, second}

	ids := []string{bootID, "8e4d6b21-2222-4333-9444-055566667777"}
	all := &twoNodes{all: map[string]*corev1.Node{}}
	var known []string
	var is [2]installed
	var machines [2]engine.Machine
	// cloned: the second host's disk is a copy of the first's, so that it shows the same key.
	var cloned sync.Map
	for i, name := range []string{"node-1", "node-2"} {
		in := install(t)
		in.boots(t, ids[i])
		is[i] = in
		known = append(known, knownhosts.Line([]string{fmt.Sprintf("[%s]:%d", name, port)}, keys[1+i].signer.PublicKey()))
		writeFile(t, in.dir, "authorized_keys", fmt.Sprintf("restrict,command=%q %s", in.gated(t, w), ssh.MarshalAuthorizedKey(keys[0].signer.PublicKey())))
		for of := range 2 {
			writeFile(t, in.dir, fmt.Sprintf("host_key_%d", of), string(keys[1+of].pem))
			writeFile(t, in.dir, fmt.Sprintf("sshd_config_%d", of), fmt.Sprintf("HostKey %[1]s/host_key_%[2]d\nPidFile none\nAuthorizedKeysFile %[1]s/authorized_keys\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\n", in.dir, of))
		}
		w.serve(listeners[i], func() string {
			of := i
			if _, is := cloned.Load(i); is {
				of = 0
			}
			return filepath.Join(in.dir, fmt.Sprintf("sshd_config_%d", of))
		})
		uid := types.UID("uid-" + name)
		all.all[name] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}, Status: corev1.NodeStatus{
			NodeInfo: corev1.NodeSystemInfo{BootID: ids[i]}, Addresses: addresses(fmt.Sprintf("127.0.0.%d", 1+i)),
		}}
		machines[i] = engine.Machine{Node: name, UID: string(uid), Attempt: "abcdef-0-1"}
	}
	options := Options{Hosts: settings.Hosts{
		User: me.Username, Port: port, KeyFile: writeFile(t, dir, "key", string(keys[0].pem)), Sudo: true, Timeout: timeout,
		KnownHostsFile: writeFile(t, dir, "known_hosts", strings.Join(known, "\n")+"\n"), Units: []string{"kubelet.service"},
	}}
	var clients []*Client
	again := func() engine.Actuator {
		c, err := New(options)
		require.NoError(t, err)
		clients = append(clients, c)
		return Rebooter{Machines{c, all, []corev1.NodeAddressType{corev1.NodeInternalIP}}, Clean}
	}
	return providertest.World{
		Actuator: again(), Again: again,
		Machine: machines[0], Neighbour: machines[1], ID: ids[0], NeighbourID: ids[1], Wire: w,
		Changed: func() (out []string) {
			for i, in := range is {
				for range strings.Count(in.read(t, "reboots"), "\n") {
					out = append(out, ids[i])
				}
			}
			return out
		},
		Set: func(which providertest.Scene) engine.Machine {
			switch which {
			case providertest.NoMachine:
				all.set("node-1", func(n map[string]*corev1.Node) { delete(n, "node-1") })
			case providertest.TwoMachines: // both have an address of the Node, and show its key
				cloned.Store(1, true)
				all.set("node-1", func(n map[string]*corev1.Node) { n["node-1"].Status.Addresses = addresses("127.0.0.2", "127.0.0.1") })
				w.cutAll()
			case providertest.AnotherOfItsName: // installed again, with the same key
				is[0].boots(t, "9f5e7c32-3333-4444-a555-166677778888")
			case providertest.ItsIDIsAnothers: // its address is now the neighbour's
				all.set("node-1", func(n map[string]*corev1.Node) { n["node-1"].Status.Addresses = addresses("127.0.0.2") })
			}
			return machines[0]
		},
		Close: func() {
			for _, c := range clients {
				c.Close()
			}
			w.Close()
		},
	}
}

func addresses(ips ...string) (out []corev1.NodeAddress) {
	for _, ip := range ips {
		out = append(out, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: ip})
	}
	return out
}

func writeFile(t testing.TB, dir, name, content string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
