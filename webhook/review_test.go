package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/admission"
	"drydock.dev/drydock/test/admission/requests"
)

// reviewOf returns a review as the API server sends it.
func reviewOf(t testing.TB, c *requests.Case) []byte {
	t.Helper()
	req := request(t, c).AdmissionRequest
	body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &req})
	require.NoError(t, err)
	return body
}

func ask(h http.Handler, contentType string, body []byte) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, nodesPath, bytes.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestReviewsAreAnswered: any other body is a failed call, and the API server's failurePolicy then
// allows the request.
func TestReviewsAreAnswered(t *testing.T) {
	d := newDesk(t, remediations.ModeEnforce)
	h := reviews(d.handler)
	denied := reviewOf(t, &requests.Case{By: requests.Person, Before: func(n *corev1.Node) { requests.Put(n, requests.Record(remediations.PhaseActing)) }})
	w := ask(h, "application/json", denied)
	require.Equal(t, http.StatusOK, w.Code)
	var answer admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	require.Equal(t, "admission.k8s.io/v1, Kind=AdmissionReview", answer.GroupVersionKind().String())
	require.EqualValues(t, "1", answer.Response.UID)
	require.False(t, answer.Response.Allowed)
	require.Equal(t, metav1.StatusReasonForbidden, answer.Response.Result.Reason)

	for name, tc := range map[string]struct {
		contentType, body string
		code              int
	}{
		"another content type": {"text/plain", string(denied), http.StatusBadRequest},
		"no JSON":              {"application/json", "{", http.StatusBadRequest},
		"no request":           {"application/json", `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}`, http.StatusBadRequest},
		"another version":      {"application/json", strings.Replace(string(denied), "admission.k8s.io/v1", "admission.k8s.io/v9", 1), http.StatusBadRequest},
		"too long":             {"application/json", strings.Repeat(" ", maxBody+1), http.StatusRequestEntityTooLarge},
		"too many values":      {"application/json", "[" + strings.Repeat("{},", maxBody/4) + "{}]", http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			w := ask(h, tc.contentType, []byte(tc.body))
			require.Equal(t, tc.code, w.Code, w.Body)
			require.Empty(t, w.Header().Get("Retry-After"), "the API server would wait for it, beyond its own 2 s")
		})
	}
	require.Equal(t, 1, d.count("denied", admission.ReasonDeletion), "the others reached no rule")
}

// TestFewBytesTakeLittleMemory: for any content of a body, decoding allocates no more than the
// counted values allow.
func TestFewBytesTakeLittleMemory(t *testing.T) {
	const fill = 1 << 18
	counted := func(i int) string { return fmt.Sprintf(`"%s":"",`, strconv.FormatInt(int64(i), 36)) }
	list := func(one string) string {
		return "[" + strings.TrimSuffix(strings.Repeat(one+",", fill/(len(one)+1)), ",") + "]"
	}
	var labels strings.Builder
	for i := range fill / 8 {
		labels.WriteString(counted(i))
	}
	for name, node := range map[string]string{
		"labels":      `{"metadata":{"labels":{` + labels.String() + `"z":""}}}`,
		"annotations": `{"metadata":{"annotations":{` + labels.String() + `"z":""}}}`,
		"taints":      `{"spec":{"taints":` + list("{}") + `}}`,
		"conditions":  `{"status":{"conditions":` + list("{}") + `}}`,
		"lists":       `{"spec":{"podCIDRs":` + list(`""`) + `}}`,
		"depth":       `{"status":{"x":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}}`,
	} {
		t.Run(name, func(t *testing.T) {
			values := strings.Count(node, ",") + strings.Count(node, "{") + strings.Count(node, "[")
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := readNode([]byte(node))
			runtime.ReadMemStats(&after)
			require.NoError(t, err)
			took := int(after.TotalAlloc - before.TotalAlloc)
			t.Logf("%d bytes with %d values allocate %d", len(node), values, took)
			require.Less(t, took, 3*128*values+2*len(node)+1<<16, "garbage that the growth of lists and maps leaves included")
		})
	}
}

// TestTheServerKnowsItsClients: with an authority for clients, only a client with its certificate
// is answered. The server uses only HTTP/1.1.
func TestTheServerKnowsItsClients(t *testing.T) {
	for _, known := range []bool{true, false} {
		t.Run(fmt.Sprint(known), func(t *testing.T) {
			dir := t.TempDir()
			certificate(t, dir, time.Now().Add(time.Hour))
			d := newDesk(t, remediations.ModeEnforce)
			client := fake.NewClientset()
			client.PrependReactor("create", "selfsubjectreviews", func(k8stesting.Action) (bool, k8sruntime.Object, error) {
				return true, &authenticationv1.SelfSubjectReview{Status: authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: "drydock"}}}, nil
			})
			o := d.Options
			o.Client, o.CertDir, o.Listen = client, dir, freeAddress(t)
			if known {
				o.ClientCAFile = filepath.Join(dir, "tls.crt") // which signed itself
			}
			s := &Server{Options: o, metrics: d.metrics}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- s.Start(ctx) }()
			t.Cleanup(func() {
				stop()
				require.NoError(t, <-ended)
				require.Error(t, s.Ready())
			})
			pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
			require.NoError(t, err)
			post := func(certs ...tls.Certificate) (*http.Response, error) {
				c := &http.Client{Transport: &http.Transport{
					TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certs}, ForceAttemptHTTP2: true, DisableKeepAlives: true, //nolint:gosec // it is about the client's
				}}
				return c.Post("https://"+o.Listen+nodesPath, "application/json", bytes.NewReader(reviewOf(t, &requests.Case{By: requests.Person})))
			}
			require.Eventually(t, func() bool {
				c, err := net.Dial("tcp", o.Listen)
				if err == nil {
					_ = c.Close()
				}
				return err == nil
			}, time.Minute, time.Millisecond)
			res, err := post(pair)
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, res.StatusCode)
			require.Equal(t, 1, res.ProtoMajor)
			_, err = io.Copy(io.Discard, res.Body)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.NoError(t, s.Ready())
			res, err = post()
			if known {
				require.ErrorContains(t, err, "certificate required")
				return
			}
			require.NoError(t, err, "the control")
			require.NoError(t, res.Body.Close())
		})
	}
}

// freeAddress returns a free port below 32768. The kernel assigns ports from 32768 on by itself, so
// another test could otherwise have the port before the server listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	for port := 10000 + os.Getpid()%20000; port < 32768; port++ {
		if l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			require.NoError(t, l.Close())
			return l.Addr().String()
		}
	}
	require.Fail(t, "no port is free")
	return ""
}
