package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestANodeIsAddedThoughEtcdWasSlow: a single timeout while thousands of nodes are added must not
// end the run. A fault that does not pass by itself ends it.
func TestANodeIsAddedThoughEtcdWasSlow(t *testing.T) {
	for name, c := range map[string]struct {
		first string
		fails string
		asked []string
	}{
		"etcd timed out after it had made the node": {
			first: `{"kind":"Status","status":"Failure","message":"etcdserver: request timed out","reason":"InternalError","code":500}`,
			asked: []string{"POST", "POST", "PATCH", "PATCH"},
		},
		"the control: a right is missing": {
			first: `{"kind":"Status","status":"Failure","message":"nodes is forbidden","reason":"Forbidden","code":403}`,
			fails: "adding node node-7: nodes is forbidden", asked: []string{"POST"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Method)
				w.Header().Set("Content-Type", "application/json")
				switch {
				case len(asked) == 1:
					w.WriteHeader(http.StatusInternalServerError)
					_, _ = io.WriteString(w, c.first)
				case r.Method == http.MethodPost:
					w.WriteHeader(http.StatusConflict)
					_, _ = io.WriteString(w, `{"kind":"Status","status":"Failure","message":"there is one","reason":"AlreadyExists","code":409}`)
				default:
					_, _ = io.WriteString(w, `{"kind":"Node","apiVersion":"v1","metadata":{"name":"node-7"}}`)
				}
			}))
			defer api.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: api.URL})
			require.NoError(t, err)
			err = (&fleet{client: client, again: wait.Backoff{Steps: 3}}).add(t.Context(), 7)
			if c.fails == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.fails)
			}
			require.Equal(t, c.asked, asked)
		})
	}
}

// TestTheNodesAreAwaitedThoughEtcdIsSlow: a list that timed out is repeated. A missing right ends
// the wait at once.
func TestTheNodesAreAwaitedThoughEtcdIsSlow(t *testing.T) {
	for name, c := range map[string]struct {
		code  int
		first string
		fails string
		lists int
	}{
		"etcd timed out":                  {500, `{"kind":"Status","status":"Failure","message":"etcdserver: request timed out","reason":"InternalError","code":500}`, "", 3},
		"the control: a right is missing": {403, `{"kind":"Status","status":"Failure","message":"leases is forbidden","reason":"Forbidden","code":403}`, "leases is forbidden", 1},
	} {
		t.Run(name, func(t *testing.T) {
			lists := 0
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				lists++
				w.Header().Set("Content-Type", "application/json")
				switch {
				case lists == 1:
					w.WriteHeader(c.code)
					_, _ = io.WriteString(w, c.first)
				case strings.HasSuffix(r.URL.Path, "/leases"):
					_, _ = io.WriteString(w, `{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","items":[{"metadata":{"name":"node-0"}}]}`)
				default:
					_, _ = io.WriteString(w, `{"kind":"NodeList","apiVersion":"v1","items":[{"metadata":{"name":"node-0"}}]}`)
				}
			}))
			defer api.Close()
			client, err := kubernetes.NewForConfig(&rest.Config{Host: api.URL})
			require.NoError(t, err)
			err = (&fleet{client: client, size: 1, again: wait.Backoff{Duration: time.Millisecond}}).await(t.Context())
			if c.fails == "" {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, c.fails)
			}
			require.Equal(t, c.lists, lists)
		})
	}
}
