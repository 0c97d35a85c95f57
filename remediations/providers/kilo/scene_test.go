package kilo

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"drydock.dev/drydock/remediations/providers/kilo/election"
	"drydock.dev/drydock/remediations/providers/kilo/settings"
)

// onNode makes a Node of Kilo's, healthy in every way; changes adapt it to the test.
func onNode(name, location string, changes ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{election.DefaultTopologyLabel: location}, Annotations: map[string]string{
			election.EndpointKey: "10.0.0.1:51820", election.InternalIPKey: "10.0.0.1/24", election.GranularityKey: "location",
			election.PublicKeyKey: base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, 32)),
			election.LastSeenKey:  strconv.FormatInt(noon.Unix()-10, 10),
		}},
		Spec:   corev1.NodeSpec{PodCIDR: "10.244.0.0/24"},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	for _, c := range changes {
		c(n)
	}
	return n
}

func with(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Annotations[key] = value }
}

func without(key string) func(*corev1.Node) {
	return func(n *corev1.Node) { delete(n.Annotations, key); delete(n.Labels, key) }
}

func label(key, value string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

// scene is a mesh, and Prometheus' data about it.
type scene struct {
	*Mesh
	client *fake.Clientset
	// local and cross are the results, by "src>dst": digits 0 or 1, the last result of each pair at
	// the end.
	local, cross map[string]string
	// answer, if it is set, replaces the answer of Prometheus.
	answer http.HandlerFunc
	mu     sync.Mutex
	asked  []string
}

func (s *scene) queries() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// section is the section of the configuration with its defaults, and with these servers.
func section(t *testing.T, servers ...string) settings.Kilo {
	t.Helper()
	var schema struct {
		Properties map[string]struct{ Default any }
	}
	require.NoError(t, json.Unmarshal([]byte(settings.Section.Schema), &schema))
	word := func(key string) string {
		value, ok := schema.Properties[key].Default.(string)
		require.True(t, ok, key)
		return value
	}
	span := func(key string) time.Duration {
		d, err := time.ParseDuration(word(key))
		require.NoError(t, err)
		return d
	}
	return settings.Kilo{TopologyLabel: word("topologyLabel"), Job: word("job"), Timeout: span("timeout"), MaxAge: span("maxAge"), Prometheus: urls(t, servers...)}
}

func urls(t *testing.T, texts ...string) (out []*url.URL) {
	t.Helper()
	for _, text := range texts {
		u, err := url.Parse(text)
		require.NoError(t, err)
		out = append(out, u)
	}
	return out
}

func newScene(t *testing.T, change func(*Options), all ...*corev1.Node) *scene {
	t.Helper()
	s := &scene{client: fake.NewClientset(), local: map[string]string{}, cross: map[string]string{}}
	for _, n := range all {
		_, err := s.client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = s.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(t.Context(), lease(n.Name, noon.Add(-5*time.Second)), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	o := Options{
		Kilo: section(t, server.URL),
		API:  s.client.CoreV1().Nodes(), Leases: s.client.CoordinationV1().Leases(corev1.NamespaceNodeLease), Nodes: func(context.Context) ([]*corev1.Node, error) { return all, nil },
		Now: func() time.Time { return noon },
	}
	if change != nil {
		change(&o)
	}
	m, err := New(o)
	require.NoError(t, err)
	s.Mesh = m
	return s
}

// lease is a kubelet's lease.
func lease(node string, renewed time.Time) *coordinationv1.Lease {
	at, seconds := metav1.NewMicroTime(renewed), int32(40)
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: node}, Spec: coordinationv1.LeaseSpec{RenewTime: &at, LeaseDurationSeconds: &seconds}}
}

func (s *scene) serve(w http.ResponseWriter, r *http.Request) {
	query := r.FormValue("query")
	s.mu.Lock()
	s.asked = append(s.asked, query)
	s.mu.Unlock()
	if s.answer != nil {
		s.answer(w, r)
		return
	}
	said := s.cross
	if strings.Contains(query, `path="local"`) {
		said = s.local
	}
	writeMatrix(w, matrix(said))
}

func writeMatrix(w http.ResponseWriter, m model.Matrix) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": m}})
}

// matrix makes samples of "src@location>dst" and digits, ten seconds apart, up to noon.
func matrix(said map[string]string) model.Matrix {
	m := model.Matrix{}
	for p, digits := range said {
		src, dst, _ := strings.Cut(p, ">")
		src, location, _ := strings.Cut(src, "@")
		dst, proto, _ := strings.Cut(dst, "/")
		if proto == "" {
			proto = "tcp"
		}
		series := &model.SampleStream{Metric: model.Metric{
			"node": model.LabelValue(src), "src_node": "somebody", "dst_node": model.LabelValue(dst), "src_location": model.LabelValue(location), "proto": model.LabelValue(proto),
		}}
		for i, d := range digits {
			at := noon.Add(-10 * time.Second * time.Duration(len(digits)-1-i))
			if d == ' ' {
				continue
			}
			series.Values = append(series.Values, model.SamplePair{Timestamp: model.TimeFromUnixNano(at.UnixNano()), Value: model.SampleValue(d - '0')})
		}
		m = append(m, series)
	}
	return m
}

// everybodyReaches fills in that all nodes of a location reach each other, except the broken ones:
// these reach no node and no node reaches them.
func (s *scene) everybodyReaches(names []string, broken ...string) {
	bad := map[string]bool{}
	for _, b := range broken {
		bad[b] = true
	}
	for _, a := range names {
		for _, b := range names {
			if a != b {
				s.local[a+">"+b] = map[bool]string{true: "000000", false: "111111"}[bad[a] || bad[b]]
			}
		}
	}
}

// east is a location of four nodes, led by the first because it has the key.
func east(changes ...func(name string, n *corev1.Node)) []*corev1.Node {
	var out []*corev1.Node
	for i := range 4 {
		n := onNode(fmt.Sprintf("east-%d", i), "east")
		if i == 0 {
			n.Annotations[election.LeaderKey], n.Annotations[election.WireGuardIPKey] = "true", "10.4.0.1/16"
		}
		for _, c := range changes {
			c(n.Name, n)
		}
		out = append(out, n)
	}
	return out
}

var easterners = []string{"east-0", "east-1", "east-2", "east-3"}

// fromWest adds the results of a node elsewhere about each of the names.
func (s *scene) fromWest(digits string, names ...string) {
	for _, n := range names {
		s.cross["west-0@west>"+n] = digits
	}
}
