package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/test/admission/requests"
)

// desk is a handler with everything that it needs, and with fakes of the Nodes and the API server.
type desk struct {
	*handler
	client *fake.Clientset
	nodes  map[string]*corev1.Node
}

func newDesk(t require.TestingT, mode remediations.Mode) *desk {
	d := &desk{client: fake.NewClientset(), nodes: map[string]*corev1.Node{}}
	m, err := newMetrics(prometheus.NewRegistry(), "")
	require.NoError(t, err)
	all := func() []*corev1.Node { return slices.Collect(maps.Values(d.nodes)) }
	d.handler = newHandler(
		Options{
			Config: requests.Config(mode), Exempt: requests.Exempt, Drivers: admission.ShippedDrivers(), Client: d.client, Pods: d.client.CoreV1(),
			Node:  func(name string) *corev1.Node { return d.nodes[name] },
			Nodes: all, Repairing: all,
			Log: logr.Discard(), Clock: clocktesting.NewFakeClock(requests.Now),
		},
		requests.Drydock.Name, m, judgeNode,
	)
	return d
}

func (d *desk) count(verdict string, reason admission.Reason) int {
	return int(testutil.ToFloat64(d.metrics.total.WithLabelValues(verdict, string(reason))))
}

// granted answers each SubjectAccessReview.
type granted bool

func (g granted) Create(_ context.Context, r *authorizationv1.SubjectAccessReview, _ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	r.Status.Allowed = bool(g)
	return r, nil
}

// request returns the case of the table as the API server would send it.
func request(t require.TestingT, c *requests.Case) ctrladmission.Request {
	before, after := c.Nodes()
	req := ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		UID: "1", Name: requests.Node, Operation: admissionv1.Update,
		UserInfo: authenticationv1.UserInfo{Username: c.By.Name, Groups: c.By.Groups},
	}}
	raw := func(n *corev1.Node) runtime.RawExtension {
		if n == nil {
			return runtime.RawExtension{}
		}
		b, err := json.Marshal(n)
		require.NoError(t, err)
		return runtime.RawExtension{Raw: b}
	}
	req.OldObject, req.Object = raw(before), raw(after)
	switch {
	case before == nil:
		req.Operation = admissionv1.Create
	case after == nil:
		req.Operation = admissionv1.Delete
	}
	if c.Status {
		req.SubResource = "status"
	}
	return req
}

// TestHandlerSaysWhatTheCoreSays: for each case of the table, the answer is the decision of package
// admission, and the metric counts it.
func TestHandlerSaysWhatTheCoreSays(t *testing.T) {
	for _, c := range requests.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			d := newDesk(t, remediations.ModeEnforce)
			d.Reviews = granted(!c.Unentitled)
			res := d.Handle(t.Context(), request(t, &c))
			require.Equal(t, !c.Denied, res.Allowed)
			require.Equal(t, c.Warned, len(res.Warnings) > 0)
			verdict, reason := allowed, c.Reason
			if reason == "" {
				reason = admission.ReasonNone
			}
			switch {
			case c.Denied:
				verdict = denied
				require.Equal(t, metav1.StatusReasonForbidden, res.Result.Reason)
				require.NotEmpty(t, res.Result.Message)
			case c.Warned:
				verdict = warned
			}
			require.Equal(t, 1, d.count(verdict, reason))
			require.Equal(t, c.BreakGlass, res.AuditAnnotations[breakGlassAudit] != "")
			require.Empty(t, d.client.Actions(), "admission of Nodes neither reads nor writes")
		})
	}
}

func TestHandlerSaysWhatTheCoreSaysWhateverIsAsked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := requests.Generate(t)
		d := newDesk(t, remediations.ModeEnforce)
		d.Reviews = granted(!c.Unentitled)
		want := admission.Validate(d.Config, c.ChangeOf(), d.Nodes, requests.Now)
		res := d.Handle(context.Background(), request(t, &c))
		require.Equal(t, want.Allowed, res.Allowed)
		require.Equal(t, want.Warnings, res.Warnings)
	})
}

// TestWhatBreakGlassAllowsIsInTheAuditLog: the API server adds the audit annotation to its log
// entry, which has the user's name.
func TestWhatBreakGlassAllowsIsInTheAuditLog(t *testing.T) {
	d := newDesk(t, remediations.ModeEnforce)
	c := requests.Case{By: requests.Person, Before: func(n *corev1.Node) {
		requests.Put(n, requests.Record(remediations.PhaseActing))
		n.Annotations[remediations.BreakGlassKey] = "the rack is on fire"
	}}
	res := d.Handle(t.Context(), request(t, &c))
	require.True(t, res.Allowed)
	require.Equal(t, map[string]string{"break-glass": "deleting the node"}, res.AuditAnnotations)
	require.Equal(t, 1, d.count(allowed, admission.ReasonDeletion))
}

func TestRequestsThatCannotBeReadAreLetThrough(t *testing.T) {
	c := requests.Case{By: requests.Person}
	for name, break_ := range map[string]func(*ctrladmission.Request){
		"no JSON":          func(r *ctrladmission.Request) { r.OldObject.Raw = []byte("{") },
		"no Node":          func(r *ctrladmission.Request) { r.OldObject.Raw = []byte(`{"spec":1}`) },
		"no old object":    func(r *ctrladmission.Request) { r.OldObject.Raw = nil },
		"no object at all": func(r *ctrladmission.Request) { r.Operation = admissionv1.Update; r.Object.Raw = nil },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, remediations.ModeEnforce)
			req := request(t, &c)
			break_(&req)
			res := d.Handle(t.Context(), req)
			require.True(t, res.Allowed)
			require.Len(t, res.Warnings, 1)
			require.Equal(t, 1, d.count(allowed, undecodable))
		})
	}
}

// TestPanicLetsThrough: a panic allows the request, also through controller-runtime's own handler,
// which would deny it.
func TestPanicLetsThrough(t *testing.T) {
	d := newDesk(t, remediations.ModeEnforce)
	d.judge = func(*handler, context.Context, ctrladmission.Request) (string, admission.Decision) { panic("oh") }
	c := requests.Case{By: requests.Person}
	res := (&ctrladmission.Webhook{Handler: d.handler}).Handle(t.Context(), request(t, &c))
	require.True(t, res.Allowed)
	require.Equal(t, 1, d.count(allowed, panicked))
}

func TestEvictions(t *testing.T) {
	d := newDesk(t, remediations.ModeEnforce)
	d.judge = judgeEviction
	n := requests.Bare()
	requests.Put(n, requests.Record(remediations.PhaseActing))
	d.nodes[n.Name] = n
	d.nodes["n2"] = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}}
	for pod, node := range map[string]string{"busy": "n1", "well": "n2", "unscheduled": "", "strange": "n9"} {
		_, err := d.client.CoreV1().Pods("ns").Create(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: pod}, Spec: corev1.PodSpec{NodeName: node}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	evict := func(pod string, by requests.User) ctrladmission.Response {
		return d.Handle(t.Context(), ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
			Namespace: "ns", Name: pod, Operation: admissionv1.Create, SubResource: "eviction",
			UserInfo: authenticationv1.UserInfo{Username: by.Name, Groups: by.Groups},
		}})
	}
	refused := evict("busy", requests.Person)
	require.False(t, refused.Allowed)
	require.EqualValues(t, http.StatusTooManyRequests, refused.Result.Code, "the repair ends, so it is only too early")
	require.Equal(t, metav1.StatusReasonTooManyRequests, refused.Result.Reason)
	require.Equal(t, 1, d.count(denied, admission.ReasonEviction))
	for _, pod := range []string{"well", "unscheduled", "strange"} {
		require.True(t, evict(pod, requests.Person).Allowed, pod)
	}
	require.Zero(t, d.count(allowed, podUnreadable))
	require.True(t, evict("gone", requests.Person).Allowed)
	require.Equal(t, 1, d.count(allowed, podUnreadable))
	reads := len(d.client.Actions())
	require.True(t, evict("busy", requests.Autoscale).Allowed)
	require.True(t, evict("busy", requests.Drydock).Allowed)
	require.Len(t, d.client.Actions(), reads, "no read for those who are let through anyway")
	d.client.PrependReactor("get", "pods", func(k8stesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no") })
	require.True(t, evict("busy", requests.Person).Allowed)
	require.Equal(t, 2, d.count(allowed, podUnreadable))
}

// TestEvictionsCauseNoReadWhileNoRepairIsInFlight: any client that reaches the port can send
// evictions, and each would cause a request to the API server.
func TestEvictionsCauseNoReadWhileNoRepairIsInFlight(t *testing.T) {
	for phase, reads := range map[remediations.Phase]int{"": 0, remediations.PhasePending: 0, remediations.PhaseExhausted: 0, remediations.PhaseActing: 1, remediations.PhaseVerifying: 1} {
		for _, name := range []string{requests.Node, "another"} {
			d := newDesk(t, remediations.ModeEnforce)
			d.judge, d.Client = judgeEviction, nil // what a request causes goes through the client that has a rate
			n := requests.Bare()
			n.Name = name
			if phase != "" {
				requests.Put(n, requests.Record(phase))
			}
			d.nodes[n.Name] = n
			res := d.Handle(t.Context(), ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
				Namespace: "ns", Name: "forged", Operation: admissionv1.Create, SubResource: "eviction", UserInfo: authenticationv1.UserInfo{Username: requests.Person.Name},
			}})
			require.True(t, res.Allowed)
			require.Len(t, d.client.Actions(), reads, "%s on %s", phase, name)
		}
	}
}

func TestSeriesAreThereFromTheStart(t *testing.T) {
	reg := prometheus.NewRegistry()
	m, err := newMetrics(reg, "")
	require.NoError(t, err)
	require.Equal(t, 3*len(admission.Reasons)+4, testutil.CollectAndCount(m.total))
	_, err = newMetrics(reg, "")
	require.Error(t, err, "the control: they are registered")
}

// TestEachRequestIsNotedWhenItComes: each request, whatever its result, shows that the API server
// reaches this replica.
func TestEachRequestIsNotedWhenItComes(t *testing.T) {
	d := newDesk(t, remediations.ModeEnforce)
	asked := 0
	d.Asked = func() { asked++ }
	require.Zero(t, testutil.ToFloat64(d.metrics.last), "the control")
	d.Handle(t.Context(), ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{UID: "1", Name: requests.Node, Operation: admissionv1.Update}})
	require.InDelta(t, float64(requests.Now.Unix()), testutil.ToFloat64(d.metrics.last), 0)
	require.Equal(t, 1, asked)
}

func TestSelf(t *testing.T) {
	client := fake.NewClientset()
	name := requests.Drydock.Name
	var fails error
	client.PrependReactor("create", "selfsubjectreviews", func(k8stesting.Action) (bool, runtime.Object, error) {
		return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: name}}}, fails
	})
	got, err := Self(t.Context(), client)
	require.NoError(t, err)
	require.Equal(t, requests.Drydock.Name, got)
	name = ""
	_, err = Self(t.Context(), client)
	require.ErrorContains(t, err, "the answer has no name")
	fails = fmt.Errorf("no")
	_, err = Self(t.Context(), client)
	require.ErrorContains(t, err, "asking the API server for Drydock's own user name")
}
