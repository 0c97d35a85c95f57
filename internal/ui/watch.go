package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
)

const (
	// askEvery is for the leader's Lease, which shows that the API server answers. A watch without
	// events does not show that.
	askEvery = 5 * time.Second
	// readAgain is for objects that the user may list but not watch.
	readAgain = 15 * time.Second
	askFor    = 4 * time.Second
)

type connection struct {
	// Lost reports that the API server does not answer. The page then shows the state at Since.
	Lost bool `json:"lost"`
	// Since is an RFC 3339 time. It is empty unless the connection is lost.
	Since string `json:"since,omitempty"`
	// Why is the error if the connection is lost, or else a right that the user lacks.
	Why string `json:"why,omitempty"`
}

// State returns the value of data-connection in the page.
func (c connection) State() string {
	if c.Lost {
		return "lost"
	}
	return "ok"
}

// link computes the state of the connection from the results of its sources: the watches and the
// regular check.
type link struct {
	mu  sync.Mutex
	now func() time.Time
	// lost has the last error of each source that fails. missing has the API server's refusal for
	// sources that the user may not read.
	lost, missing map[string]string
	good          time.Time
	notify        func(connection)
	// first is closed when each source in awaited has data or an error, or when the regular check has
	// failed.
	first   chan struct{}
	awaited map[string]bool
}

// noteResult gets a nil err for a request that succeeded.
func (l *link) noteResult(source string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.missing, source)
	switch {
	case err == nil:
		delete(l.lost, source)
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err):
		delete(l.lost, source)
		l.missing[source] = plain(err.Error())
	default:
		l.lost[source] = plain(words(err))
	}
	c := connection{}
	for _, of := range []string{nodesSource, ledgerSource, presence} {
		if why := l.lost[of]; why != "" && !c.Lost {
			c.Lost, c.Why = true, why
		}
	}
	if !c.Lost {
		l.good = l.now()
		c.Why = l.missing[nodesSource]
	}
	if c.Lost && !l.good.IsZero() {
		c.Since = stamp(l.good)
	}
	l.notify(c)
	if err != nil {
		l.knownLocked(source)
	}
}

func (l *link) lacks(source string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.missing[source] != ""
}

func (l *link) known(source string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.knownLocked(source)
}

func (l *link) knownLocked(source string) {
	if source == presence { // the API server does not answer, so waiting for other sources is useless
		clear(l.awaited)
	}
	delete(l.awaited, source)
	select {
	case <-l.first:
	default:
		if len(l.awaited) == 0 {
			close(l.first)
		}
	}
}

// words leaves out the address and the query of the request.
func words(err error) string {
	var unreachable *url.Error
	if errors.As(err, &unreachable) {
		return fmt.Sprintf("the API server does not answer: %v", unreachable.Err)
	}
	return err.Error()
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// nodesSource and ledgerSource are watches. presence is the regular check that the API server
// answers.
const (
	nodesSource  = "nodes"
	ledgerSource = "ledger"
	presence     = "presence"
)

type store struct {
	add, drop func(runtime.Object)
	replace   func([]runtime.Object)
}

func (s store) Add(o any) error    { s.add(o.(runtime.Object)); return nil }
func (s store) Update(o any) error { s.add(o.(runtime.Object)); return nil }
func (s store) Delete(o any) error { s.drop(o.(runtime.Object)); return nil }
func (s store) Resync() error      { return nil }
func (s store) Replace(all []any, _ string) error {
	objects := make([]runtime.Object, len(all))
	for i, o := range all {
		objects[i] = o.(runtime.Object)
	}
	s.replace(objects)
	return nil
}

func (u *UI) follow(ctx context.Context, source string, of runtime.Object, into store, list func(context.Context, metav1.ListOptions) (runtime.Object, error), begin func(context.Context, metav1.ListOptions) (watch.Interface, error)) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			all, err := list(ctx, o)
			u.link.noteResult(source, err)
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := begin(ctx, o)
			u.link.noteResult(source, err)
			if apierrors.IsForbidden(err) { // a user who may list but not watch gets a new list at intervals
				select {
				case <-ctx.Done():
				case <-u.After(readAgain):
				}
			}
			return w, err
		},
	}
	quiet := logr.Discard() // the page shows errors
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, u.Reader.CoreV1Interface), of, into, cache.ReflectorOptions{
		Name: "drydock ui: " + source, Logger: &quiet,
		Backoff: &wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Jitter: 0.2, Cap: 2 * time.Second, Steps: 10},
	})
	r.RunWithContext(klog.NewContext(ctx, quiet))
}

func (u *UI) watchNodes(ctx context.Context) {
	nodes := u.Reader.Nodes()
	u.follow(ctx, nodesSource, &corev1.Node{}, store{
		add:  func(o runtime.Object) { u.fleet.put(trim(o.(*corev1.Node)), u.Reader.Now()) },
		drop: func(o runtime.Object) { u.fleet.drop(o.(*corev1.Node).Name) },
		replace: func(all []runtime.Object) {
			nodes := make([]*corev1.Node, len(all))
			for i, o := range all {
				nodes[i] = trim(o.(*corev1.Node))
			}
			u.fleet.replace(nodes, u.Reader.Now())
			u.link.known(nodesSource)
		},
	}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) }, nodes.Watch)
}

// trim keeps only the fields that the pages show, to save memory: most of a real Node is images,
// managedFields and other annotations. It keeps the managedFields that show who holds repairs. It
// drops what a heartbeat changes, so that a heartbeat does not count as a change.
func trim(n *corev1.Node) *corev1.Node {
	t := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, Labels: n.Labels, CreationTimestamp: n.CreationTimestamp, DeletionTimestamp: n.DeletionTimestamp},
		Spec:       corev1.NodeSpec{ProviderID: n.Spec.ProviderID, Unschedulable: n.Spec.Unschedulable, Taints: n.Spec.Taints},
	}
	for k, v := range n.Annotations {
		if remediations.Relevant(k) {
			metav1.SetMetaDataAnnotation(&t.ObjectMeta, k, v)
		}
	}
	if new(inspect.Ledger).Said(t, time.Time{}) != nil {
		t.ManagedFields = inspect.Setters(n)
	}
	for _, c := range n.Status.Conditions {
		t.Status.Conditions = append(t.Status.Conditions, corev1.NodeCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
	}
	return t
}

// readLedger also stores the ledger in u.fleet. If it cannot be read, Problem says why.
func (u *UI) readLedger(ctx context.Context) inspect.Ledger {
	bounded, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	l, err := u.Reader.ReadLedger(bounded)
	if err != nil {
		l.Name, l.Problem = u.Reader.Ledger, words(err)
	}
	u.fleet.setLedger(l, u.Reader.Now())
	u.link.known(ledgerSource)
	return l
}

// watchLedger follows the ledger's ConfigMap. If there is none, the page shows why.
func (u *UI) watchLedger(ctx context.Context) {
	maps := u.Reader.ConfigMaps(cmp.Or(u.readLedger(ctx).Namespace, u.namespace()))
	only := func(o metav1.ListOptions) metav1.ListOptions {
		o.FieldSelector = "metadata.name=" + u.Reader.Ledger
		return o
	}
	put := func(o runtime.Object) {
		u.fleet.setLedger(inspect.DecodeLedger(o.(*corev1.ConfigMap)), u.Reader.Now())
	}
	u.follow(ctx, ledgerSource, &corev1.ConfigMap{}, store{
		add: put, drop: func(runtime.Object) { u.readLedger(ctx) },
		replace: func(all []runtime.Object) {
			if len(all) == 0 {
				u.readLedger(ctx)
			} else {
				put(all[0])
			}
		},
	}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return maps.List(ctx, only(o))
	},
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return maps.Watch(ctx, only(o))
		})
}

// ask reads the leader's Lease every few seconds. A broken watch may look like a quiet one for a
// long time.
func (u *UI) ask(ctx context.Context) {
	for {
		bounded, cancel := context.WithTimeout(ctx, askFor)
		leader, err := u.Reader.ReadLeader(bounded, cmp.Or(u.fleet.namespace(), u.namespace()), u.Reader.Lease)
		cancel()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			u.fleet.setLeader(leader)
			if u.link.lacks(ledgerSource) {
				u.readLedger(ctx)
			}
		}
		u.link.noteResult(presence, err)
		u.fleet.judge(u.Reader.Now())
		select {
		case <-ctx.Done():
			return
		case <-u.After(askEvery):
		}
	}
}

func (u *UI) namespace() string {
	return cmp.Or(u.Reader.Namespace, inspect.LedgerNamespace)
}
