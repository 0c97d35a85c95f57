package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/cli"
)

// machineRoom is a receiver of providers.http that keeps the actions that it was asked for.
type machineRoom struct {
	mu      sync.Mutex
	actions []string
	status  int
	answer  string
}

func (r *machineRoom) ServeHTTP(w http.ResponseWriter, in *http.Request) {
	var d struct{ Action string }
	text, err := io.ReadAll(in.Body)
	if err != nil || json.Unmarshal(text, &d) != nil {
		http.Error(w, "no document", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.actions = append(r.actions, d.Action)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	_, _ = io.WriteString(w, r.answer) // a client that left fails by itself
}

// TestCheckAsksOneProviderAboutOneMachine, says what the first call would send, and sends nothing
// that changes anything. A provider that refuses, and one that does not answer, end with 1 and the
// provider's sentence.
func TestCheckAsksOneProviderAboutOneMachine(t *testing.T) {
	list, err := json.Marshal(corev1.NodeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "NodeList"}, Items: []corev1.Node{{
		ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "uid-1"}, Spec: corev1.NodeSpec{ProviderID: "rack://1"},
		Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: "boot-1"}},
	}}})
	require.NoError(t, err)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(list) // a client that left fails by itself
	}))
	t.Cleanup(api.Close)
	kubeconfig := write(t, "kubeconfig", "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: \""+api.URL+"\"}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}\n")
	for name, tc := range map[string]struct {
		status int
		answer string
		code   int
		says   []string
	}{
		"it can act": {200, `{"uid":"uid-1","can":["reboot"],"machine":"running"}`, cli.ExitOK, []string{
			"providers.http, reboot of Node n1: the provider answers, knows this machine and would not refuse\n",
			"the first call would send (nothing was sent): POST URL/reboot {\"version\":\"1\",\"action\":\"reboot\",\"node\":\"n1\",\"uid\":\"uid-1\",\"providerID\":\"rack://1\"",
		}},
		"it knows no such machine": {404, `{"error":"no such machine"}`, cli.ExitFailed, []string{"reboot of Node n1: the provider would refuse: ", "HTTP 404: it refuses"}},
		"it takes no credentials":  {401, `{"error":"who are you"}`, cli.ExitFailed, []string{"the provider would refuse: ", "check signingKeyFile and httpConfig"}},
	} {
		t.Run(name, func(t *testing.T) {
			room := &machineRoom{status: tc.status, answer: tc.answer}
			server := httptest.NewServer(room)
			defer server.Close()
			config := sound + "providers: {http: {reboot: {url: \"" + server.URL + "/reboot\"}, observe: {url: \"" + server.URL + "/observe\"}, signingKeyFile: key}}\n"
			file := write(t, "drydock.yaml", config)
			require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(file), "key"), []byte(strings.Repeat("k", 32)), 0o600))
			code, stdout, stderr := call(t, "check", file, "--kubeconfig", kubeconfig, "--provider", "http", "--node", "n1")
			require.Equal(t, tc.code, code, stdout+stderr)
			for _, says := range tc.says {
				require.Contains(t, stdout, strings.ReplaceAll(says, "URL", server.URL))
			}
			require.NotEmpty(t, room.actions, "the control: it was asked")
			require.NotContains(t, room.actions, "reboot")
		})
	}
	file := write(t, "drydock.yaml", sound)
	for line, says := range map[string]string{
		"--provider http":           "[node]",
		"--provider http --node n1": "--provider and --node need --kubeconfig",
		"--skip-files --kubeconfig " + kubeconfig + " --provider http --node n1": "remove --skip-files",
		"--kubeconfig " + kubeconfig + " --provider http --node n2":              "the cluster has no Node \"n2\"",
		"--kubeconfig " + kubeconfig + " --provider http --node n1":              "the configuration has no provider \"http\" that acts on nodes; it has none",
	} {
		code, _, stderr := call(t, append([]string{"check", file}, strings.Fields(line)...)...)
		require.Equal(t, cli.ExitUsage, code, line)
		require.Contains(t, stderr, says, line)
	}
}
