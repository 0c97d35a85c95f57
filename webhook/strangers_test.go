package webhook

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	k8stesting "k8s.io/client-go/testing"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"drydock.dev/drydock/internal/httpserver"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/test/admission/requests"
)

// inRepair returns a request that deletes a node during its repair, which is denied.
func inRepair(makeLarge func(*corev1.Node)) *requests.Case {
	return &requests.Case{By: requests.Person, Before: func(n *corev1.Node) {
		requests.Put(n, requests.Record(remediations.PhaseActing))
		makeLarge(n)
	}}
}

func answerOf(t *testing.T, body io.Reader) *admissionv1.AdmissionResponse {
	t.Helper()
	var answer admissionv1.AdmissionReview
	require.NoError(t, json.NewDecoder(body).Decode(&answer))
	return answer.Response
}

// TestALargeNodeIsJudgedAllTheSame: a client that can make a Node large must not escape the checks
// that way.
func TestALargeNodeIsJudgedAllTheSame(t *testing.T) {
	for name, makeLarge := range map[string]func(*corev1.Node){
		"the control": func(*corev1.Node) {},
		"commas in an annotation": func(n *corev1.Node) {
			n.Annotations["example.com/list"] = strings.Repeat(",", 256<<10)
		},
		"a kubelet's condition that JSON writes with six bytes a character": func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: "Large", Message: strings.Repeat("<", 1400<<10)})
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, remediations.ModeEnforce)
			w := ask(reviews(d.handler), "application/json", reviewOf(t, inRepair(makeLarge)))
			require.Equal(t, http.StatusOK, w.Code, w.Body)
			require.False(t, answerOf(t, w.Body).Allowed)
			require.Equal(t, 1, d.count(denied, admission.ReasonDeletion))
		})
	}
}

// TestWhatIsTooLargeIsDenied: a review with too many bytes or too many values is denied, except
// Drydock's own requests.
func TestWhatIsTooLargeIsDenied(t *testing.T) {
	for name, makeLarge := range map[string]func(*corev1.Node){
		"bytes":  func(n *corev1.Node) { n.Annotations["example.com/long"] = strings.Repeat("x", maxBody) },
		"values": func(n *corev1.Node) { n.Spec.Taints = make([]corev1.Taint, maxDecoded/128) },
	} {
		for _, by := range []requests.User{requests.Person, requests.Drydock} {
			t.Run(name+" by "+by.Name, func(t *testing.T) {
				d := newDesk(t, remediations.ModeEnforce)
				c := inRepair(makeLarge)
				c.By = by
				w := ask(reviews(d.handler), "application/json", reviewOf(t, c))
				require.Equal(t, http.StatusOK, w.Code, w.Body)
				answer := answerOf(t, w.Body)
				require.EqualValues(t, "1", answer.UID)
				require.Equal(t, by.Name == requests.Drydock.Name, answer.Allowed)
				if !answer.Allowed {
					require.Contains(t, answer.Result.Message, "too large")
					require.Equal(t, 1, d.count(denied, tooLarge))
				}
			})
		}
	}
}

// TestReviewsWithoutBodiesBlockNoOtherClient: over real connections, only a review whose body has
// arrived takes a place.
func TestReviewsWithoutBodiesBlockNoOtherClient(t *testing.T) {
	d := newDesk(t, remediations.ModeEnforce)
	s := httpserver.New("the test", reviews(d.handler), limits(), logr.Discard())
	l, err := s.Listen(t.Context(), "127.0.0.1:0", nil)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l, 0, func() {}) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	body := reviewOf(t, inRepair(func(*corev1.Node) {}))
	send := func(what []byte) net.Conn {
		c, err := (&net.Dialer{Timeout: time.Minute}).DialContext(t.Context(), "tcp", l.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", nodesPath, len(body), what)
		require.NoError(t, err)
		return c
	}
	for range 4 * maxRequests {
		send(body[:len(body)/2])
	}
	require.Eventually(t, func() bool { return s.Open() == 4*maxRequests }, time.Minute, time.Millisecond)
	res, err := http.ReadResponse(bufio.NewReader(send(body)), nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.False(t, answerOf(t, res.Body).Allowed)
	require.NoError(t, res.Body.Close())
	require.GreaterOrEqual(t, s.Open(), 4*maxRequests, "the control: the others still wait")
}

// TestStrangersDoNotFillTheLog: many denials do not fill the log, nor does one long name. Log lines
// have no terminal control characters.
func TestStrangersDoNotFillTheLog(t *testing.T) {
	var lines []string
	d := newDesk(t, remediations.ModeEnforce)
	d.Log = funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})
	req := request(t, inRepair(func(*corev1.Node) {}))
	require.False(t, d.Handle(t.Context(), req).Allowed)
	require.Len(t, lines, 1, "the control")
	require.Contains(t, lines[0], "jane")
	req.UserInfo.Username = "\x1b]52;" + strings.Repeat("x", 3<<20)
	for range 1000 {
		require.False(t, d.Handle(t.Context(), req).Allowed)
	}
	broken := req
	broken.OldObject.Raw = []byte(`{"spec":"` + strings.Repeat("x", 1<<20) + `"}`)
	d.lines = newLines()
	require.Less(t, len(d.Handle(t.Context(), broken).Warnings[0]), 500)
	require.LessOrEqual(t, len(lines), 2*linesAtOnce)
	for _, line := range lines {
		require.LessOrEqual(t, len(line), 1500)
		require.NotContains(t, line, "\x1b")
	}
}

// word returns a request that sets a person's annotation on a node. With known it is as the API
// server sends it; without it, as a stranger sends it who does not know the Node's UID.
func word(t *testing.T, d *desk, key string, known bool) ctrladmission.Request {
	c := requests.Case{By: requests.Person, Before: func(n *corev1.Node) { n.UID = "a stranger's guess" }, Change: requests.Annotate(key, "reboot")}
	if known {
		c.Before = func(n *corev1.Node) { n.UID = d.nodes[requests.Node].UID }
	}
	return request(t, &c)
}

// TestStrangersDoNotUseUpThePeoplesReviews: forged requests have a small budget of rights checks.
// When it is used up, their annotations are denied, even those that only stop repairs. The requests
// that an API server sends are still checked.
func TestStrangersDoNotUseUpThePeoplesReviews(t *testing.T) {
	d := newDesk(t, remediations.ModeEnforce)
	d.nodes[requests.Node] = requests.Bare()
	d.nodes[requests.Node].UID = "real"
	d.Reviews = d.client.AuthorizationV1().SubjectAccessReviews()
	reviewed := 0
	d.client.PrependReactor("create", "subjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
		reviewed++
		r := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		r.Status.Allowed = true
		return true, r, nil
	})
	const forged = 500
	for range forged {
		d.Handle(t.Context(), word(t, d, remediations.ApproveKey, false))
	}
	require.Less(t, reviewed, forged/10)
	for _, key := range []string{remediations.CancelKey, remediations.BreakGlassKey, remediations.ApproveKey} {
		require.False(t, d.Handle(t.Context(), word(t, d, key, false)).Allowed, "%s of a stranger", key)
		require.True(t, d.Handle(t.Context(), word(t, d, key, true)).Allowed, "%s of a person", key)
	}
}

// TestALargeUserIsNotSentOn: Drydock does not send such a user to the API server, and allows none
// of the user's annotations.
func TestALargeUserIsNotSentOn(t *testing.T) {
	for name, makeLarge := range map[string]func(*authenticationv1.UserInfo){
		"the control":  func(u *authenticationv1.UserInfo) { u.Groups = make([]string, 1000) },
		"a long group": func(u *authenticationv1.UserInfo) { u.Groups = []string{strings.Repeat("g", 1<<20)} },
		"many groups":  func(u *authenticationv1.UserInfo) { u.Groups = make([]string, 100_000) },
		"many extras": func(u *authenticationv1.UserInfo) {
			u.Extra = map[string]authenticationv1.ExtraValue{"x": make([]string, 100_000)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, remediations.ModeEnforce)
			d.nodes[requests.Node] = requests.Bare()
			d.nodes[requests.Node].UID = "real"
			d.Reviews = d.client.AuthorizationV1().SubjectAccessReviews()
			d.client.PrependReactor("create", "subjectaccessreviews", func(a k8stesting.Action) (bool, runtime.Object, error) {
				r := a.(k8stesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
				r.Status.Allowed = true
				return true, r, nil
			})
			req := word(t, d, remediations.CancelKey, true)
			makeLarge(&req.UserInfo)
			small := name == "the control"
			require.Equal(t, small, d.Handle(t.Context(), req).Allowed)
			require.Equal(t, small, len(d.client.Actions()) == 1)
		})
	}
}

// TestNoForgedRequestLooksAtTheFleet: the cost of a forged request must not grow with the number of
// Nodes.
func TestNoForgedRequestLooksAtTheFleet(t *testing.T) {
	d := newDesk(t, remediations.ModeEnforce)
	d.nodes[requests.Node] = requests.Bare()
	d.nodes[requests.Node].UID = "real"
	looks := 0
	d.Nodes, d.Repairing = func() []*corev1.Node { looks++; return []*corev1.Node{d.nodes[requests.Node]} }, func() []*corev1.Node { return nil }
	for _, key := range []string{remediations.RequestKey, admission.MeshLeaderKey} {
		d.Handle(t.Context(), word(t, d, key, false))
	}
	d.judge = judgeEviction
	d.Handle(t.Context(), ctrladmission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Namespace: "ns", Name: "forged"}})
	require.Zero(t, looks)
	d.judge = judgeNode
	d.Handle(t.Context(), word(t, d, remediations.RequestKey, true))
	require.NotZero(t, looks, "the control: a person is warned that the request must wait")
}
