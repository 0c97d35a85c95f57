package crash

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// intentGood is how long after its intent a call may still arrive. It is the 10 s of invariant 4,
// one second more because the record's times have no fractions, and half a second for the way.
const intentGood = 11500 * time.Millisecond

// stalled is for how long this process, which makes every call, got no processor. A call is not
// late because of that.
var stalled = watchStalls()

type stalls struct {
	mu  sync.Mutex
	all []stall
}

type stall struct {
	end  time.Time
	long time.Duration
}

func watchStalls() *stalls {
	const every = 50 * time.Millisecond
	s := &stalls{}
	go func() { // ends with the test binary
		last := time.Now()
		for range time.Tick(every) {
			now := time.Now()
			if long := now.Sub(last) - every; long > every {
				s.mu.Lock()
				s.all = append(s.all, stall{now, long})
				s.mu.Unlock()
			}
			last = now
		}
	}()
	return s
}

func (s *stalls) since(begin time.Time) (sum time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.all {
		if one.end.After(begin) {
			sum += one.long
		}
	}
	return sum
}

// provider is a yard's own provider. In front of it is a server that asks the test about each
// reboot and records what arrives.
type provider struct {
	yard   *yard
	civo   *lab.Civo
	server *httptest.Server

	mu       sync.Mutex
	arrivals []arrival
	rebooted map[string]int
}

// arrival is a reboot that reached the provider, with the intent that its Node had at that time.
type arrival struct {
	node, intent string
	since        time.Time // when the intent was written, in full seconds
}

func newProvider(y *yard) *provider {
	y.t.Helper()
	p := &provider{yard: y, rebooted: map[string]int{}}
	var err error
	p.civo, err = y.lab.StartCivo(y.t.Context(), lab.CivoOptions{RebootTime: y.rebootTime, Machines: p})
	require.NoError(y.t, err)
	upstream, err := url.Parse(p.civo.URL())
	require.NoError(y.t, err)
	reverse := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(upstream) },
		ModifyResponse: func(res *http.Response) error {
			c, ok := res.Request.Context().Value(callKey{}).(*call)
			if !ok {
				return nil
			}
			c.answer = res
			if y.ask(c, after) != lab.Pass {
				return errors.New("the answer is lost")
			}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := time.Now() // now, because what follows may take time
		c := &call{request: r}
		node := p.nodeOf(r.URL.Path)
		if r.Method == http.MethodPost {
			c.what, c.name = node, "provider POST hard_reboots "+y.short(node)
		}
		if y.ask(c, before) != lab.Pass {
			panic(http.ErrAbortHandler)
		}
		if r.Method == http.MethodPost {
			p.arrived(node, at)
		}
		reverse.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
	}))
	y.t.Cleanup(p.civo.Close)
	y.t.Cleanup(p.server.Close)
	return p
}

func (p *provider) url() string { return p.server.URL }

func (p *provider) nodeOf(path string) string {
	for _, in := range p.civo.Instances() {
		if strings.Contains(path, "/instances/"+in.ID+"/") {
			return in.Hostname
		}
	}
	return ""
}

// arrived checks the promises when a call arrives. Its Node must have a young intent whose call has
// not arrived before, and a slot in the ledger. The slot may name the attempt of a leader that has
// just continued after a stall. If two leaders begin on one Node at the same time, the Node's
// resourceVersion decides, and the limits count the Node once.
func (p *provider) arrived(node string, at time.Time) {
	y, ctx := p.yard, context.WithoutCancel(p.yard.t.Context())
	var n *corev1.Node
	var l *ledger.Ledger
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, lab.Patience, true, func(ctx context.Context) (bool, error) {
		if n, last = y.lab.Client().CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{}); last == nil {
			l, last = y.readLedger(ctx)
		}
		return last == nil, nil // an error is possible: the test may just have killed the API server
	})
	if err != nil {
		y.breach("a reboot of %q arrived, and its Node or the ledger cannot be read: %v", node, last)
		return
	}
	a := arrival{node: node}
	r := remediations.InFlight(n)
	switch {
	case r == nil:
		y.breach("a reboot of %s arrived without an intent on the Node", node)
	case at.Sub(r.Intent.At)-stalled.since(r.Intent.At) > intentGood:
		y.breach("a reboot of %s arrived %s after its intent %s", node, at.Sub(r.Intent.At), r.Intent.ID)
	}
	if r != nil {
		a.intent, a.since = r.Intent.ID, r.Intent.At
	}
	if !slices.ContainsFunc(l.Slots, func(s ledger.Slot) bool { return s.Kind == "" && s.Node == node }) {
		y.breach("a reboot of %s arrived for %s, and the ledger has no slot for it: %+v", node, a.intent, l.Slots)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.arrivals {
		if a.node == b.node && a.intent == b.intent {
			y.breach("attempt %s of %s arrived twice", a.intent, node)
		}
	}
	p.arrivals = append(p.arrivals, a)
}

// to returns the intents whose calls reached the node's machine, and when the last of them was
// written.
func (p *provider) to(node string) (intents []string, last time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range p.arrivals {
		if a.node == node {
			intents, last = append(intents, a.intent), a.since
		}
	}
	return intents, last
}

// calls returns only these intents.
func (p *provider) calls(node string) []string {
	intents, _ := p.to(node)
	return intents
}

// Away implements civosim.Machines. It does nothing, because this lab's API server has no node
// controller that would judge heartbeats.
func (p *provider) Away(context.Context, civosim.Instance) error { return nil }

// Reboot implements civosim.Machines. The machine is back with a new boot ID. It is healthy if this
// was the reboot that cures it.
func (p *provider) Reboot(ctx context.Context, in civosim.Instance, bootID string, _ bool) error {
	if p.yard.held {
		select {
		case <-p.yard.back:
		case <-ctx.Done():
			return nil
		}
	}
	p.mu.Lock()
	p.rebooted[in.Hostname]++
	cured := p.rebooted[in.Hostname] >= p.yard.cures
	p.mu.Unlock()
	if cured {
		// First the alert ends and is posted to Drydock. So the writes have the same order on any
		// machine.
		if err := p.yard.alerts.resolve(ctx, in.Hostname); err != nil {
			p.yard.breach("resolving the alert of %s: %v", in.Hostname, err)
		}
		return p.yard.lab.Heal(ctx, in.Hostname, bootID)
	}
	patch := fmt.Sprintf(`{"status":{"nodeInfo":{"bootID":%q}}}`, bootID)
	_, err := p.yard.lab.Client().CoreV1().Nodes().Patch(ctx, in.Hostname, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status")
	return err
}

// Remove and Add implement civosim.Machines. No test here replaces a machine.
func (p *provider) Remove(context.Context, civosim.Instance) error { return nil }
func (p *provider) Add(context.Context, civosim.Instance) error    { return nil }
