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
	// askEvery is how often the API server is asked whether it is there, where no watch has anything to tell.
	askEvery = 5 * time.Second
	// readAgain is how often what may not be watched is read.
	readAgain = 15 * time.Second
	// askFor is how long its answer may take.
	askFor = 4 * time.Second
)

// Connection is whether what the page shows is current.
type Connection struct {
	// Lost: the API server does not answer. What is shown is what was known at Since.
	Lost bool `json:"lost"`
	// Since is when it was last known to answer, of a lost connection, as RFC 3339.
	Since string `json:"since,omitempty"`
	// Why says what is missing: of a lost connection the error, of another one a right that the user does not have.
	Why string `json:"why,omitempty"`
}

// State is what the page's body says.
func (c Connection) State() string {
	if c.Lost {
		return "lost"
	}
	return "ok"
}

// link knows from each watch, and from the question whether anybody is there, how the connection is.
type link struct {
	mu  sync.Mutex
	now func() time.Time
	// lost has the error of each source that does not work now, missing the right that one lacks.
	lost, missing map[string]string
	good          time.Time
	tell          func(Connection)
	// first is closed when each source that is awaited was read once, or could not be.
	first   chan struct{}
	awaited map[string]bool
}

// heard takes what came of a request of a source.
func (l *link) heard(source string, err error) {
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
	c := Connection{}
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
	l.tell(c)
	if err != nil {
		l.knownLocked(source)
	}
}

// lacks says that the user may not watch the source.
func (l *link) lacks(source string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.missing[source] != ""
}

// known says that the source was read once.
func (l *link) known(source string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.knownLocked(source)
}

func (l *link) knownLocked(source string) {
	if source == presence { // nobody answers, whoever asks
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

// words says an error without the address and the query of the request, which say nothing to a reader.
func words(err error) string {
	var unreachable *url.Error
	if errors.As(err, &unreachable) {
		return fmt.Sprintf("the API server does not answer: %v", unreachable.Err)
	}
	return err.Error()
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// The sources of what the page knows.
const (
	nodesSource  = "nodes"
	ledgerSource = "ledger"
	presence     = "presence"
)

// store takes what a watch brings.
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

// follow keeps a store as the API server has it, until ctx ends.
func (u *UI) follow(ctx context.Context, source string, of runtime.Object, into store, list func(context.Context, metav1.ListOptions) (runtime.Object, error), begin func(context.Context, metav1.ListOptions) (watch.Interface, error)) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			all, err := list(ctx, o)
			u.link.heard(source, err)
			return all, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := begin(ctx, o)
			u.link.heard(source, err)
			if apierrors.IsForbidden(err) { // who may list but not watch gets a list now and then, and not all the time
				select {
				case <-ctx.Done():
				case <-u.After(readAgain):
				}
			}
			return w, err
		},
	}
	quiet := logr.Discard() // what fails is said on the page
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(lw, u.Reader.CoreV1Interface), of, into, cache.ReflectorOptions{
		Name: "drydock ui: " + source, Logger: &quiet,
		Backoff: &wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Jitter: 0.2, Cap: 2 * time.Second, Steps: 10},
	})
	r.RunWithContext(klog.NewContext(ctx, quiet))
}

// watchNodes follows the Nodes.
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

// trim keeps of a Node what the pages show. Most of a real one is images, managed fields and other people's annotations; of the managed
// fields those stay that show who keeps Drydock away. What a heartbeat changes goes, too, so that two Nodes differ only in what a page may
// show.
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

// readLedger reads the ledger, or why there is none, in the words of the commands.
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

// watchLedger follows the ledger where it is. Without one it says why, as the commands do.
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

// ask asks every few seconds whether the API server is there. A watch can hang for long before anybody notices.
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
		u.link.heard(presence, err)
		u.fleet.judge(u.Reader.Now())
		select {
		case <-ctx.Done():
			return
		case <-u.After(askEvery):
		}
	}
}

// namespace is where Drydock is.
func (u *UI) namespace() string {
	return cmp.Or(u.Reader.Namespace, inspect.LedgerNamespace)
}
