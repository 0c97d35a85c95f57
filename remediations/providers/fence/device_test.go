package fence

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providers/fence/settings"
	"drydock.dev/drydock/remediations/testing/providertest"
)

const (
	uuid1  = "4c4c4544-0042-3510-8054-b7c04f4d3332"
	uuid2  = "4c4c4544-0042-3510-8054-b7c04f4d3333"
	secret = `fence-horse+battery/"staple"<&> 'x'`
)

var (
	machine1 = engine.Machine{Node: "node-1", UID: "u-1", SystemUUID: uuid1, Attempt: "abcdef-0-1"}
	machine2 = engine.Machine{Node: "node-2", UID: "u-2", SystemUUID: uuid2, Attempt: "fedcba-0-1"}
)

func yes() error { return nil }

// TestMain is also the fence agent of the tests: a link with the name fence_fake leads to the
// test's program.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "fence_fake" {
		agentMain()
	}
	os.Exit(m.Run())
}

// asked has the arguments and the input of the agent.
type asked struct {
	Args, Env []string
	Input     string
}

// orders says what the agent must do.
type orders struct {
	Out, Errors string
	Code        int
	// Flood: one of the outputs never ends. Trickle: the output comes byte by byte.
	FloodOut, FloodErrors, Trickle bool
	// Stubborn: the agent ignores SIGTERM, starts a process that holds its output, and ends.
	Stubborn bool
}

// agentMain requests orders from the device, and carries them out.
func agentMain() {
	input, _ := io.ReadAll(os.Stdin)
	address := ""
	for line := range strings.Lines(string(input)) {
		if value, is := strings.CutPrefix(strings.TrimSpace(line), "ip="); is {
			address = value
		}
	}
	conn, err := net.Dial("unix", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Connection lost")
		os.Exit(1)
	}
	_ = json.NewEncoder(conn).Encode(asked{os.Args[1:], os.Environ(), string(input)})
	var do orders
	if json.NewDecoder(bufio.NewReader(conn)).Decode(&do) != nil {
		fmt.Fprintln(os.Stderr, "Connection lost")
		os.Exit(1)
	}
	if do.Stubborn {
		signal.Ignore(syscall.SIGTERM)
		holder := exec.Command("/bin/sleep", "1000")
		holder.Stdout, holder.Stderr = os.Stdout, os.Stderr
		_ = holder.Start()
		_, _ = fmt.Fprintln(conn, holder.Process.Pid)
	}
	_, _ = io.WriteString(os.Stdout, do.Out)
	_, _ = io.WriteString(os.Stderr, do.Errors)
	for written := 0; do.FloodOut || do.FloodErrors || do.Trickle; {
		to, chunk := os.Stdout, strings.Repeat("x", 32<<10)
		if do.FloodErrors {
			to = os.Stderr
		}
		if do.Trickle {
			chunk = " "
			time.Sleep(20 * time.Millisecond)
		}
		n, err := io.WriteString(to, chunk)
		if written += n; err != nil {
			break
		}
		if written > 4<<20 {
			_, _ = fmt.Fprintln(conn, "overread")
			break
		}
	}
	os.Exit(do.Code)
}

// device has outlets, and is the other side of the agents. It is a providertest.Wire, too.
type device struct {
	t      testing.TB
	listen net.Listener
	end    context.CancelFunc
	closed context.Context
	// said receives each line that an agent prints after its request.
	said chan string

	mu       sync.Mutex
	on       map[string]bool // by plug
	nodes    []*corev1.Node
	done     []string // the plugs that were switched off
	ons      int
	asked    []asked
	requests []providertest.Request
	armed    []armed
	busy     int
	many     int
	overread bool
	changed  chan struct{}
	// order replaces the answer to an action.
	order map[string]orders
}

type armed struct {
	from, to int // to is exclusive; negative: no end
	fault    providertest.Fault
}

func newDevice(t testing.TB) *device {
	t.Helper()
	d := &device{t: t, on: map[string]bool{"1": true, "2": true}, nodes: []*corev1.Node{node("node-1", uuid1), node("node-2", uuid2)}, changed: make(chan struct{}), said: make(chan string, 100), order: map[string]orders{}}
	d.closed, d.end = context.WithCancel(context.Background())
	var err error
	d.listen, err = net.Listen("unix", filepath.Join(t.TempDir(), "d"))
	require.NoError(t, err)
	go func() {
		for {
			conn, err := d.listen.Accept()
			if err != nil {
				return
			}
			go d.serve(conn)
		}
	}()
	return d
}

func node(name, uuid string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rack": "a"}}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{SystemUUID: uuid}}}
}

// obey carries out an agent's action, and returns what the agent must print.
func (d *device) obey(action, plug string) orders {
	d.mu.Lock()
	defer d.mu.Unlock()
	on, there := d.on[plug]
	state := map[bool]string{true: "ON", false: "OFF"}
	switch {
	case !there:
		return orders{Errors: "Failed: Unable to obtain correct plug status or plug is not available\n", Code: 1}
	case action == "status":
		return orders{Out: "Status: " + state[on] + "\n", Code: map[bool]int{true: 0, false: 2}[on]}
	case on == (action == "on"):
		return orders{Out: "Success: Already " + state[on] + "\n"}
	case action == "off":
		d.done = append(d.done, plug)
	default:
		d.ons++
	}
	d.on[plug] = !on
	return orders{Out: "Success: Powered " + state[!on] + "\n"}
}

func (d *device) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	d.mu.Lock()
	d.many++
	d.mu.Unlock()
	r := bufio.NewReader(conn)
	question, err := r.ReadBytes('\n')
	var a asked
	if err != nil || json.Unmarshal(question, &a) != nil {
		return
	}
	options := map[string]string{}
	for line := range strings.Lines(a.Input) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		options[name] = value
	}
	d.mu.Lock()
	n := len(d.asked)
	d.asked = append(d.asked, a)
	fault, faulty := d.faultOf(n)
	next, _ := d.faultOf(n + 1)
	ordered, special := d.order[options["action"]]
	d.busy++
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.busy--
		d.mu.Unlock()
	}()
	var do orders
	if !faulty || fault.Done {
		do = d.obey(options["action"], options["plug"])
	}
	if special {
		do = ordered
	}
	d.mu.Lock()
	d.requests = append(d.requests, providertest.Request{Number: n, Changes: options["action"] == "off", What: options["action"]})
	close(d.changed)
	d.changed = make(chan struct{})
	d.mu.Unlock()
	if next.Kind == providertest.Gone {
		_ = d.listen.Close()
	}
	if faulty {
		text := fault.Text + " You sent " + a.Input
		switch fault.Kind {
		case providertest.Slow:
			time.Sleep(providertest.Slowly)
		case providertest.Gone, providertest.Cut:
			return
		case providertest.Hang:
			_, _ = io.Copy(io.Discard, r)
			return
		case providertest.Half:
			do.Out, do.Code = do.Out[:len(do.Out)/2], 0
		case providertest.Garbage:
			do = orders{Out: "Status: " + text}
		case providertest.Endless:
			do = orders{FloodOut: true}
		case providertest.EndlessHeader:
			do = orders{FloodErrors: true}
		case providertest.Trickle:
			do = orders{Trickle: true}
		case providertest.Page:
			do = orders{Out: "<html>" + text + "</html>", Code: map[bool]int{false: 1}[fault.Status == 200]}
		case providertest.Redirect, providertest.RedirectHere:
			do = orders{Errors: text, Code: 2} // the code of a machine that is off
		case providertest.Answer:
			do = orders{Errors: "Failed: Unable to obtain correct plug status or plug is not available " + text, Code: 1}
			if fault.Status == 401 || fault.Status == 403 {
				do.Errors = "Failed: The user does not have the correct privileges to do the requested action. " + text
			}
		}
	}
	_ = json.NewEncoder(conn).Encode(do)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		d.mu.Lock()
		d.overread = d.overread || line == "overread\n"
		d.mu.Unlock()
		d.said <- strings.TrimSpace(line)
	}
}

// faultOf returns the fault for the request of that number. The caller holds mu.
func (d *device) faultOf(n int) (providertest.Fault, bool) {
	for _, a := range d.armed {
		if n >= a.from && (a.to < 0 || n < a.to) {
			return a.fault, true
		}
	}
	return providertest.Fault{}, false
}

func (d *device) Misbehave(first, count int, f providertest.Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	a := armed{from: len(d.asked) + first, to: -1, fault: f}
	if count >= 0 {
		a.to = a.from + count
	}
	d.armed = append(d.armed, a)
	if f.Kind == providertest.Gone && first == 0 {
		_ = d.listen.Close()
	}
}

func (d *device) Requests() []providertest.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.SortedFunc(slices.Values(d.requests), func(a, b providertest.Request) int { return a.Number - b.Number })
}

func (d *device) Await(ctx context.Context, match func(providertest.Request) bool) bool {
	for {
		d.mu.Lock()
		there, changed := slices.ContainsFunc(d.requests, match), d.changed
		d.mu.Unlock()
		if there {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		case <-d.closed.Done():
			return false
		}
	}
}

func (d *device) Busy() int { d.mu.Lock(); defer d.mu.Unlock(); return d.busy }

func (d *device) Strays() int { return 0 }

func (d *device) Overread() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.overread }

func (d *device) Connects() (int, bool) { d.mu.Lock(); defer d.mu.Unlock(); return d.many, false }

func (d *device) Close() {
	d.end()
	_ = d.listen.Close()
}

func (d *device) off() []string { d.mu.Lock(); defer d.mu.Unlock(); return slices.Clone(d.done) }

func (d *device) got() []asked { d.mu.Lock(); defer d.mu.Unlock(); return slices.Clone(d.asked) }

func (d *device) set(change func()) { d.mu.Lock(); defer d.mu.Unlock(); change() }

// Nodes returns the cluster's Nodes.
func (d *device) Nodes(context.Context) ([]*corev1.Node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.nodes), nil
}

func file(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// fake is the path of the tests' agent.
func fake(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "fence_fake")
	require.NoError(t, os.Symlink(self, path))
	return path
}

// client is a client whose agent reaches the device. perMachine: the table has the address.
func (d *device) client(timeout time.Duration, perMachine bool) *Client {
	d.t.Helper()
	address := d.listen.Addr().String()
	a := settings.Agent{
		Program: fake(d.t), Options: map[string]string{"username": "drydock", "ip": address},
		SecretFiles:  map[string]string{"password": file(d.t, "password", secret+"\n")},
		MachinesFile: file(d.t, "machines.csv", "node,uuid,plug\nnode-1,"+uuid1+",1\nnode-2,"+uuid2+",2\n"),
	}
	if perMachine {
		delete(a.Options, "ip")
		a.MachinesFile = file(d.t, "machines.csv", fmt.Sprintf("node,uuid,ip,plug\nnode-1,%s,%q,1\nnode-2,%s,%q,2\n", uuid1, address, uuid2, address))
	}
	c, err := New(settings.Fence{Agents: []settings.Agent{a}, Timeout: timeout}, d.Nodes)
	require.NoError(d.t, err)
	return c
}
