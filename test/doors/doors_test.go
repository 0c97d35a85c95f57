// Package doors floods each port of the real Drydock, one after the other, over loopback and for
// some seconds.
package doors

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/soak"
)

func TestMain(m *testing.M) {
	lab.Main(m, lab.Options{Components: lab.ControlPlane, NodeSpecs: []lab.NodeSpec{{Name: "node-1"}}})
}

// memoryLimit is resources.limits.memory of the chart.
const memoryLimit = 512 << 20

// yard is a Drydock that leads, receives alerts and serves admission.
type yard struct {
	*testing.T
	lab     *lab.Lab
	drydock *lab.Drydock
	health  string
	webhook string
	token   string
	flood   time.Duration
	clients int
}

func newYard(t *testing.T) *yard {
	t.Helper()
	t.Setenv("GOMEMLIMIT", strconv.Itoa(memoryLimit)) // as the chart sets it
	y := &yard{T: t, lab: lab.Shared(t), flood: 2 * time.Second, clients: 100}
	if soak.Whole() {
		y.flood, y.clients = 30*time.Second, 400
	}
	admission, err := lab.NewAdmission(map[string]any{"evictions": true})
	require.NoError(t, err)
	tokenFile, err := y.lab.PrepareDrydockWith(t.Context(), admission.Values(map[string]any{"mode": "enforce"}))
	require.NoError(t, err)
	token, err := os.ReadFile(tokenFile)
	require.NoError(t, err)
	// The Drydock of an earlier test was killed while it led.
	err = y.lab.Client().CoordinationV1().Leases(lab.Namespace).Delete(t.Context(), "drydock", metav1.DeleteOptions{})
	require.NoError(t, client.IgnoreNotFound(err))
	y.webhook, y.token = fmt.Sprintf("127.0.0.1:%d", admission.Port), strings.TrimSpace(string(token))
	y.drydock, err = y.lab.StartDrydock(t.Context(), tokenFile, lab.DrydockOptions{
		Admission: admission,
		Config: map[string]any{
			"alertmanager": map[string]any{"urls": []any{"http://127.0.0.1:9"}},
		},
	})
	require.NoError(t, err)
	t.Cleanup(y.drydock.Kill)
	text, err := os.ReadFile(y.drydock.ConfigFile)
	require.NoError(t, err)
	var c struct{ Health struct{ Listen string } }
	require.NoError(t, yaml.Unmarshal(text, &c))
	y.health = c.Health.Listen
	require.Eventually(t, func() bool { holder, _ := y.lease(); return holder != "" }, lab.Patience, 100*time.Millisecond)
	return y
}

func (y *yard) lease() (holder string, renewed time.Time) {
	l, err := y.lab.Client().CoordinationV1().Leases(lab.Namespace).Get(y.Context(), "drydock", metav1.GetOptions{})
	if err != nil || l.Spec.HolderIdentity == nil || l.Spec.RenewTime == nil {
		return "", time.Time{}
	}
	return *l.Spec.HolderIdentity, l.Spec.RenewTime.Time
}

// memory returns the resident memory of the process, now and at its highest.
func (y *yard) memory() (now, peak int) {
	y.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", y.drydock.PID()))
	require.NoError(y, err)
	of := func(name string) int {
		_, rest, _ := strings.Cut(string(text), name+":")
		kib, err := strconv.Atoi(strings.Fields(rest)[0])
		require.NoError(y, err)
		return kib << 10
	}
	return of("VmRSS"), of("VmHWM")
}

// answers waits until a GET is answered with 200. Its connection may be closed at first, to make
// room for another one.
func (y *yard) answers(url string) {
	y.Helper()
	client := &http.Client{Timeout: lab.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	code := 0
	require.Eventually(y, func() bool {
		res, err := client.Get(url)
		if err != nil {
			return false
		}
		defer func() { _ = res.Body.Close() }()
		code = res.StatusCode
		_, err = io.Copy(io.Discard, res.Body)
		return err == nil
	}, lab.Patience, 100*time.Millisecond, url)
	require.Equal(y, http.StatusOK, code, url)
}

// connections runs many copies of one client at the same time until the flood ends. Each has a
// connection of its own. What the server does with it does not matter.
func (y *yard) connections(ctx context.Context, use func(ctx context.Context, client int) error) (done int) {
	counts := make([]int, y.clients)
	var g errgroup.Group
	for i := range y.clients {
		g.Go(func() error {
			for ctx.Err() == nil {
				if use(ctx, i) == nil {
					counts[i]++
				}
			}
			return nil
		})
	}
	require.NoError(y, g.Wait())
	for _, n := range counts {
		done += n
	}
	return done
}

func post(ctx context.Context, client *http.Client, url, token string, body io.Reader) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}

// endless is a body that never ends. It sends 6 MiB at once.
func endless(ctx context.Context) io.Reader {
	return io.MultiReader(bytes.NewReader(make([]byte, 6<<20)), until{ctx})
}

type until struct{ context.Context }

func (u until) Read([]byte) (int, error) {
	<-u.Done()
	return 0, u.Err()
}

// half sends the largest allowed header without its end, and waits.
func half(ctx context.Context, address string) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: "+strings.Repeat("x", 3<<10)); err != nil {
		return err
	}
	if err := c.SetReadDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, _ = c.Read(make([]byte, 1))
	return ctx.Err()
}

// fullOfLabels is the body that needs the most memory when it is decoded: alerts with the largest
// number of labels of one letter.
func fullOfLabels() []byte {
	var labels strings.Builder
	for i := range 60 {
		fmt.Fprintf(&labels, `"%s":"",`, strconv.FormatInt(int64(i), 36))
	}
	alert := `{"status":"firing","labels":{` + labels.String() + `"z9":""},"startsAt":"2026-01-01T00:00:00Z"},`
	return []byte(`{"version":"4","alerts":[` + strings.TrimSuffix(strings.Repeat(alert, 7000), ",") + `]}`)
}

// review is a forged AdmissionReview about a person who uses break-glass.
const review = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","name":"node-1","operation":"UPDATE","userInfo":{"username":"cfo@example.com"},
"oldObject":{"metadata":{"name":"node-1"}},"object":{"metadata":{"name":"node-1","annotations":{"drydock.dev/break-glass":"forged %d"}},"spec":{"unschedulable":true}}}}`

// TestAFloodOfAPortTakesLittleMemory. A flood also does not end the leader, and the other ports
// still answer.
func TestAFloodOfAPortTakesLittleMemory(t *testing.T) {
	y := newYard(t)
	holder, _ := y.lease()
	pid := y.drydock.PID()
	tlsClient := func() *http.Client {
		return &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // an attacker does not check certificates
	}
	h2c := &http.Protocols{}
	h2c.SetUnencryptedHTTP2(true)
	labels := fullOfLabels()
	metrics := strings.TrimSuffix(strings.TrimPrefix(y.drydock.MetricsURL, "http://"), "/metrics")
	webhook := "https://" + y.webhook + "/v1/admit/nodes"
	many := strings.Replace(fmt.Sprintf(review, 0), `"spec":{`, `"status":{"conditions":[`+strings.Repeat("{},", 2<<20)+`{}]},"spec":{`, 1)
	clients := make([]*http.Client, y.clients)
	for i := range clients {
		clients[i] = tlsClient()
	}
	for _, f := range []struct {
		name string
		use  func(ctx context.Context, client int) error
	}{
		{"receiver: HTTP/2 with endless bodies", func(ctx context.Context, _ int) error {
			return post(ctx, &http.Client{Transport: &http.Transport{Protocols: h2c}}, y.drydock.ReceiverURL, y.token, endless(ctx))
		}},
		{"receiver: endless bodies", func(ctx context.Context, i int) error {
			return post(ctx, clients[i], y.drydock.ReceiverURL, y.token, endless(ctx))
		}},
		{"receiver: bodies full of labels", func(ctx context.Context, i int) error {
			return post(ctx, clients[i], y.drydock.ReceiverURL, y.token, bytes.NewReader(labels))
		}},
		{"webhook: forged break-glass", func(ctx context.Context, i int) error {
			return post(ctx, clients[i], webhook, "", strings.NewReader(fmt.Sprintf(review, i)))
		}},
		{"webhook: endless bodies", func(ctx context.Context, i int) error { return post(ctx, clients[i], webhook, "", endless(ctx)) }},
		{"webhook: bodies full of conditions", func(ctx context.Context, i int) error {
			return post(ctx, clients[i], webhook, "", strings.NewReader(many))
		}},
		{"metrics: half headers", func(ctx context.Context, _ int) error { return half(ctx, metrics) }},
		{"health: half headers", func(ctx context.Context, _ int) error { return half(ctx, y.health) }},
	} {
		t.Run(f.name, func(t *testing.T) {
			flooding, began, least := make(chan int, 1), time.Now(), time.After(y.flood)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			go func() { flooding <- y.connections(ctx, f.use) }()
			time.Sleep(y.flood / 2) // the other ports must be called in the middle of the flood, and nothing shows the middle
			y.answers("http://" + y.health + "/healthz")
			y.answers("http://" + y.health + "/readyz")
			y.answers(y.drydock.MetricsURL)
			<-least
			end()
			done := <-flooding
			now, peak := y.memory()
			t.Logf("%d requests; resident %d MiB, at most %d MiB", done, now>>20, peak>>20)
			require.Less(t, peak, memoryLimit)
			require.Equal(t, pid, y.drydock.PID())
			require.Eventually(t, func() bool {
				is, renewed := y.lease()
				return is == holder && renewed.After(began.Add(y.flood/2))
			}, lab.Patience, 100*time.Millisecond, "it leads no more, or does not renew its lease")
		})
	}
	select {
	case <-y.drydock.Done():
		t.Fatal("the process has ended")
	default:
	}
	events, err := y.lab.Client().EventsV1().Events("").List(t.Context(), metav1.ListOptions{FieldSelector: "reason=BreakGlassSet"})
	require.NoError(t, err)
	require.Empty(t, events.Items, "a forged AdmissionReview became an Event")
}
