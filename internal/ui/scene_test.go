package ui

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/internal/inspect"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

const token = "a-token-of-this-test"

var now = time.Date(2026, 11, 23, 21, 5, 0, 0, time.UTC)

// desk is a user's browser, the page, and a cluster.
type desk struct {
	t       *testing.T
	cluster *fake.Clientset
	server  *httptest.Server
	door    *door
	client  *http.Client
	// ask makes the page check whether the API server answers.
	ask chan time.Time
	// denied are the verbs that the user lacks. It is nil before allow was called.
	denied atomic.Pointer[[]string]
	// further are answers that a test adds while the page runs, the newest first.
	mu      sync.Mutex
	further []further
}

// further is an answer of the cluster to one verb on one resource.
type further struct {
	verb, resource string
	answer         clienttesting.ReactionFunc
}

// react adds an answer. The fake's own list must not grow during requests.
func (d *desk) react(verb, resource string, answer clienttesting.ReactionFunc) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.further = append([]further{{verb, resource, answer}}, d.further...)
}

func (d *desk) reaction(a clienttesting.Action) (bool, runtime.Object, error) {
	d.mu.Lock()
	all := d.further
	d.mu.Unlock()
	for _, f := range all {
		if a.Matches(f.verb, f.resource) {
			if handled, o, err := f.answer(a); handled {
				return true, o, err
			}
		}
	}
	return false, nil, nil
}

// open serves the page until the test ends. The browser is already admitted.
func open(t *testing.T, objects ...runtime.Object) *desk {
	t.Helper()
	return openWith(t, false, nil, objects...)
}

// openAs serves a page that may be read-only.
func openAs(t *testing.T, readOnly bool, objects ...runtime.Object) *desk {
	t.Helper()
	return openWith(t, readOnly, nil, objects...)
}

// openWith lets prepare change the cluster's answers.
func openWith(t *testing.T, readOnly bool, prepare func(*fake.Clientset), objects ...runtime.Object) *desk {
	t.Helper()
	return openBy(t, func(o *Options) { o.ReadOnly = readOnly }, prepare, objects...)
}

// openBy lets change change the page's options, and prepare the cluster's answers. prepare may be
// nil.
func openBy(t *testing.T, change func(*Options), prepare func(*fake.Clientset), objects ...runtime.Object) *desk {
	t.Helper()
	d := &desk{t: t, cluster: fake.NewClientset(objects...), ask: make(chan time.Time)}
	d.cluster.PrependReactor("*", "*", d.reaction)
	d.cluster.PrependReactor("create", "selfsubjectaccessreviews", d.review)
	if prepare != nil {
		prepare(d.cluster)
	}
	o := Options{Reader: d.reader(), Token: token, After: d.after, Log: logr.Discard()}
	change(&o)
	u := New(o)
	d.door = u.door
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); u.Run(ctx) }()
	d.server = httptest.NewServer(u)
	t.Cleanup(func() { cancel(); <-ended; d.server.Close() })
	d.client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return d
}

// reader reads with the rights of the page's user.
func (d *desk) reader() *inspect.Reader {
	return &inspect.Reader{
		Client: inspect.Client{
			CoreV1Interface: listing{d.cluster.CoreV1()}, LeasesGetter: d.cluster.CoordinationV1(), SelfSubjectAccessReviewsGetter: d.cluster.AuthorizationV1(),
		},
		Now: func() time.Time { return now }, Ledger: inspect.LedgerName, Lease: "drydock",
	}
}

func (d *desk) after(length time.Duration) <-chan time.Time {
	if length == askEvery {
		return d.ask
	}
	return time.After(length)
}

// listing is the fake's client, which cannot send a list as a watch.
type listing struct{ corev1client.CoreV1Interface }

func (listing) IsWatchListSemanticsUnSupported() bool { return true }

// request is a request of the user's own page, with the cookie, modified by change.
func (d *desk) request(method, path string, change ...func(*http.Request)) *http.Request {
	d.t.Helper()
	body := io.Reader(http.NoBody)
	if method == http.MethodPost {
		body = strings.NewReader(`{}`)
	}
	r, err := http.NewRequestWithContext(d.t.Context(), method, d.server.URL+d.door.root+path, body)
	require.NoError(d.t, err)
	port := d.server.URL[strings.LastIndex(d.server.URL, ":")+1:]
	r.AddCookie(&http.Cookie{Name: cookieName(port), Value: d.door.session})
	if method == http.MethodPost {
		r.Header.Set("Origin", d.server.URL)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(tokenHeader, d.door.writing)
	}
	for _, c := range change {
		c(r)
	}
	return r
}

// do gives the answer and its body.
// answer is a response whose body was read.
type answer struct {
	StatusCode int
	Header     http.Header
}

func (a answer) Cookies() []*http.Cookie { return (&http.Response{Header: a.Header}).Cookies() }

func (d *desk) do(r *http.Request) (answer, string) {
	d.t.Helper()
	res, err := d.client.Do(r)
	require.NoError(d.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(d.t, err)
	return answer{res.StatusCode, res.Header}, string(body)
}

func (d *desk) get(path string) string {
	d.t.Helper()
	res, body := d.do(d.request(http.MethodGet, path))
	require.Equal(d.t, http.StatusOK, res.StatusCode, body)
	return body
}

func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: map[string]string{}},
		Status:     corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: "boot-" + name}, Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, c := range change {
		c(n)
	}
	return n
}

func unready(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }

// record puts a repair on the node.
func record(phase remediations.Phase, change ...func(*remediations.Record)) func(*corev1.Node) {
	return func(n *corev1.Node) {
		r := &remediations.Record{
			V: 1, ID: "k7m2pq", Policy: "node-not-ready", Cause: remediations.Cause{Alert: "9f2c0e5b6d1a4c33"}, Phase: phase,
			Step:  remediations.StepRef{Index: 1, Name: "reboot", Attempt: 1},
			Began: now.Add(-4 * time.Minute), Since: now.Add(-3 * time.Minute), Deadline: now.Add(7 * time.Minute),
		}
		if phase != remediations.PhasePending {
			r.Done = remediations.Attempts{{Name: "reboot", Number: 1}}
			r.Intent = &remediations.Intent{ID: "k7m2pq-1-1", At: now.Add(-3 * time.Minute), Outcome: remediations.CallAccepted}
		}
		if phase == remediations.PhaseExhausted {
			r.Deadline = time.Time{}
		}
		for _, c := range change {
			c(r)
		}
		n.Annotations[remediations.NodeRepairKey], n.Labels[remediations.PhaseLabel] = r.Encode(), string(phase)
	}
}

func annotated(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

// setWith sets who set the annotation, an hour ago.
func setWith(manager, key string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		at := metav1.NewTime(now.Add(-time.Hour))
		fields := metav1.NewFieldsV1(`{"f:metadata":{"f:annotations":{"f:` + key + `":{}}}}`)
		n.ManagedFields = append(n.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Time: &at, FieldsV1: fields})
	}
}

func labelled(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func ledgerWith(status ledger.Status) *corev1.ConfigMap {
	l := &ledger.Ledger{Status: status}
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "drydock", Name: inspect.LedgerName, Labels: map[string]string{"app.kubernetes.io/name": "drydock", "app.kubernetes.io/component": "ledger"},
	}, Data: l.Encode()}
}
