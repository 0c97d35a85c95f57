package crash

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
)

// replica is one process of a yard's Drydock, with a proxy of its own.
type replica struct {
	*lab.Drydock
	yard  *yard
	index int
	token string
	proxy *lab.Proxy
	// known is closed once the test holds the process. No request is forwarded before that, because
	// a hook would have no process to kill.
	known chan struct{}
	// deaths counts how often the process has ended.
	deaths atomic.Int64
	// renewed counts how often the replica has renewed the leader's Lease.
	renewed atomic.Int64
}

func newReplica(y *yard, index int, token string) *replica {
	y.t.Helper()
	proxy, err := y.lab.NewProxy()
	require.NoError(y.t, err)
	y.t.Cleanup(proxy.Close)
	r := &replica{yard: y, index: index, token: token, proxy: proxy, known: make(chan struct{})}
	proxy.Before(r.before)
	proxy.After(r.after)
	return r
}

func (r *replica) name() string { return fmt.Sprintf("drydock-%s-%d", r.yard.name, r.index) }

// start runs the process, and starts it again whenever it ends, as a kubelet would.
func (r *replica) start() {
	y := r.yard
	y.t.Helper()
	program := filepath.Join(y.t.TempDir(), "drydock")
	require.NoError(y.t, os.Symlink(y.lab.DrydockProgram(), program))
	d, err := y.lab.StartDrydock(y.t.Context(), r.token, lab.DrydockOptions{
		Name: r.name(), Namespace: y.name, Civo: y.provider.civo, Server: r.proxy.URL(), Config: y.config(), Program: program,
	})
	require.NoError(y.t, err)
	r.Drydock = d
	close(r.known)
	ctx, cancel := context.WithCancel(context.WithoutCancel(y.t.Context()))
	var work sync.WaitGroup
	work.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-d.Done():
			}
			r.deaths.Add(1)
			y.note("replica %d has ended, and is started again", r.index)
			if err := rollBack(program, d.ConfigFile); err != nil {
				y.note("replica %d is not rolled back: %v", r.index, err)
			}
			if err := d.Start(ctx); err != nil && ctx.Err() == nil {
				y.note("replica %d did not start: %v", r.index, err) // this counts as one more end
			}
		}
	})
	y.t.Cleanup(func() {
		cancel()
		work.Wait()
		d.Kill()
	})
}

// rollBack replaces this version with the program that DRYDOCK_ROLLBACK names, with a configuration
// that it can read. If the variable is not set, this version starts again.
func rollBack(program, config string) error {
	older := os.Getenv("DRYDOCK_ROLLBACK")
	if older == "" {
		return nil
	}
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	var c map[string]any
	if err := yaml.Unmarshal(text, &c); err != nil {
		return err
	}
	delete(c["leaderElection"].(map[string]any), "cluster") // 7c8b93d9 does not have it
	if text, err = yaml.Marshal(c); err != nil {
		return err
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return err
	}
	if err := os.Remove(program); err != nil {
		return err
	}
	return os.Symlink(older, program)
}

type callKey struct{}

// before is the proxy's hook. It shows the replica only the Nodes of its yard, and asks the test
// about the call.
func (r *replica) before(req *http.Request) lab.Verdict {
	if req.URL.Path == "/api/v1/nodes" {
		q := req.URL.Query()
		q.Set("labelSelector", yardLabel+"="+r.yard.name)
		req.URL.RawQuery = q.Encode()
	}
	var body []byte
	if req.Method != http.MethodGet {
		select {
		case <-r.known:
		case <-req.Context().Done():
			return lab.Reset
		}
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return lab.Reset
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	c := r.yard.describe(req, body)
	c.from = r
	*req = *req.WithContext(context.WithValue(req.Context(), callKey{}, c))
	return r.yard.ask(c, before)
}

func (r *replica) after(res *http.Response) lab.Verdict {
	c, ok := res.Request.Context().Value(callKey{}).(*call)
	if !ok {
		return lab.Pass
	}
	c.answer = res
	done := res.StatusCode < http.StatusMultipleChoices
	if c.lease != nil && done && c.lease.Spec.HolderIdentity != nil && *c.lease.Spec.HolderIdentity != "" {
		r.yard.leads(r)
	}
	if !done {
		r.yard.undo(c)
	}
	return r.yard.ask(c, after)
}

// ask numbers a call that has a name, records it, and asks the test's hook. The second call with a
// name gets #2 appended.
func (y *yard) ask(c *call, when moment) lab.Verdict {
	y.mu.Lock()
	if c.name != "" && when == before {
		y.underway.Add(1)
		y.changes.Add(1)
		c.first = c.name
		y.seen[c.first]++
		if n := y.seen[c.first]; n > 1 {
			c.name = fmt.Sprintf("%s #%d", c.first, n)
		}
	}
	h := y.hook
	y.mu.Unlock()
	v := lab.Pass
	if h != nil {
		v = h(c, when)
	}
	if c.name != "" {
		if when == after || v != lab.Pass {
			y.underway.Add(-1)
		}
		status := 0
		if c.answer != nil {
			status = c.answer.StatusCode
		}
		who := "-"
		if c.from != nil {
			who = fmt.Sprint(c.from.index)
		}
		y.note("%s %-6s %s (HTTP %d, verdict %d)", who, when, c.name, status, v)
	}
	return v
}

// undo removes a call that changed nothing from the count. So the call that is made in its place
// gets its name.
func (y *yard) undo(c *call) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if c.name != "" {
		y.seen[c.first]--
	}
}

// settled waits until each recorded call has its answer. A watch may show the result of a call
// before the call's hook runs.
func (y *yard) settled() {
	y.t.Helper()
	require.Eventually(y.t, func() bool { return y.underway.Load() == 0 }, lab.Patience, 10*time.Millisecond)
}

func (y *yard) leads(r *replica) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.leader = r
	r.renewed.Add(1)
}

// leading returns the replica that last renewed the Lease, or nil if none has.
func (y *yard) leading() *replica {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.leader
}
