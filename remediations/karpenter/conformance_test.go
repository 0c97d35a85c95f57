package karpenter

import (
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/providertest"
)

const token = "correct-horse.battery-staple.0123456789"

// TestConformance holds the provider against the contract of all providers, at a real API server with Karpenter's own kinds.
func TestConformance(t *testing.T) {
	config := lab.Shared(t).AdminConfig()
	admin, err := rest.TransportFor(config)
	require.NoError(t, err)
	server, err := url.Parse(config.Host)
	require.NoError(t, err)
	newWorld(t) // the kinds are there, and the connection stands
	providertest.Run(t, providertest.Provider{
		Slow: true,
		DoesNotApply: map[string]string{
			"testimony":            "who replaces machines is not asked whether they run",
			"an answer with holes": "the NodeClaim is read by its name, so there is no list that could lack it",
		},
		Start: func(t testing.TB, timeout time.Duration) providertest.World {
			return newWorld(t).behind(server, admin, timeout)
		},
	})
}

// behind is the world behind a wire that misbehaves.
func (w *world) behind(server *url.URL, admin http.RoundTripper, timeout time.Duration) providertest.World {
	wire := providertest.NewHTTP(w.t, providertest.HTTPOptions{
		Handler: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(server)
				r.Out.Header.Del("Authorization") // the lab's administrator is somebody else
			},
			Transport: admin, ErrorLog: log.New(io.Discard, "", 0),
		},
		Changes: func(r *http.Request) bool { return r.Method != http.MethodGet },
		Error: func(status int, text string) (string, string) {
			body, _ := json.Marshal(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(status), Message: text,
				Reason: map[int]metav1.StatusReason{404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict}[status],
			})
			return "", string(body)
		},
	})
	replacer := w.replacer(func(o *Options) { o.API, o.Timeout = &rest.Config{Host: wire.URL(), BearerToken: token}, timeout })
	replacer.Page = 1 << 14 // NodeClaims of all worlds are listed: one page, so that each world has the same requests
	one := w.machine("one")
	return providertest.World{
		Actuator: replacer, Wire: wire, Close: func() { wire.Close(); w.end() }, Secrets: []string{token},
		Machine: one, Neighbour: w.machine("ten"), ID: string(w.get("NodeClaim", "one").GetUID()), NeighbourID: string(w.get("NodeClaim", "ten").GetUID()),
		Changed: w.asked, Stage: w.stage,
		Set: func(which providertest.Scene) engine.Machine { w.scene(which); return one },
	}
}

func (w *world) scene(which providertest.Scene) {
	switch which {
	case providertest.NoMachine:
		w.delete("NodeClaim", "one")
	case providertest.TwoMachines:
		w.claim("twin", "one", nil)
	case providertest.AnotherOfItsName:
		w.delete("NodeClaim", "one")
		w.claim("one", "one", nil)
	case providertest.ItsIDIsAnothers:
		w.patch("NodeClaim", "one", m{"status": m{"nodeName": w.name("twin")}}, "status")
	}
}

func (w *world) stage(which providertest.Stage) []string {
	switch which {
	case providertest.NewFirst:
		w.later()
		w.claim("twin", "twin", nil)
	case providertest.Nothing:
		w.gone()
		w.delete("NodeClaim", "ten")
		w.delete("NodePool", "pool")
	case providertest.OldGone:
		w.gone()
	case providertest.NameAgain:
		w.later()
		w.gone()
		w.claim("one", "twin", nil)
	case providertest.Whole:
		w.later()
		w.gone()
		w.claim("twin", "twin", nil)
	case providertest.OldLingers, providertest.Holes:
	}
	return []string{w.id("twin")}
}
