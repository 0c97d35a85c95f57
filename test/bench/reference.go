package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/kube"
)

// The references run as processes of their own, as Drydock does. A process that both serves and
// sends the load would distort the measurement.
const (
	referenceGin      = "gin"      // ADDRESS: decodes a payload and does nothing with it
	referenceReceiver = "receiver" // ADDRESS KUBECONFIG: writes the alerts of each payload to their Nodes
	referenceWebhook  = "webhook"  // ADDRESS CERT KEY: allows everything
	referenceWatch    = "watch"    // ADDRESS KUBECONFIG: keeps a trimmed cache of Nodes, and does nothing with it
)

func reference(ctx context.Context, kind string, args []string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(http.ResponseWriter, *http.Request) {})
	server := &http.Server{Addr: args[0], ReadHeaderTimeout: 5 * time.Second, Handler: mux, BaseContext: nil}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	serve := server.ListenAndServe
	switch {
	case kind == referenceGin && len(args) == 1:
		mux.Handle("POST /v1/alerts", bareGin(func([]posted) {}))
	case kind == referenceReceiver && len(args) == 2:
		write, err := bareWriter(ctx, args[1])
		if err != nil {
			return err
		}
		mux.Handle("POST /v1/alerts", bareGin(write))
	case kind == referenceWebhook && len(args) == 3:
		mux.HandleFunc("POST /", allow)
		server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		serve = func() error { return server.ListenAndServeTLS(args[1], args[2]) }
	case kind == referenceWatch && len(args) == 2:
		if err := watchNodes(ctx, args[1]); err != nil {
			return err
		}
	default:
		return fmt.Errorf("there is no reference %q with %d arguments", kind, len(args))
	}
	if err := serve(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

type posted struct {
	Status       string            `json:"status"`
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL"`
}

// It decodes the same payload as Drydock's receiver, and does nothing else.
func bareGin(take func([]posted)) http.Handler {
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.POST("/v1/alerts", func(c *gin.Context) {
		var p struct {
			Version string   `json:"version"`
			Alerts  []posted `json:"alerts"`
		}
		if err := c.ShouldBindJSON(&p); err != nil {
			c.Status(http.StatusBadRequest)
			return
		}
		take(p.Alerts)
		c.JSON(http.StatusOK, gin.H{"accepted": len(p.Alerts), "ignored": 0})
	})
	return e
}

// Each firing alert is written to its Node, with as many concurrent writes as in Drydock, but
// without any check.
func bareWriter(ctx context.Context, kubeconfig string) (func([]posted), error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	f := &fleet{client: client}
	queue := make(chan posted, 100_000)
	for range workersAtOnce {
		go func() {
			for a := range queue {
				value, err := json.Marshal(a)
				if err == nil {
					err = f.patch(ctx, a.Labels["node"], remediations.AlertPrefix+remediations.Fingerprint(a.Labels), string(value))
				}
				if err != nil {
					fmt.Fprintln(os.Stderr, "writing an alert:", err)
				}
			}
		}()
	}
	return func(all []posted) {
		for _, a := range all {
			if a.Status == "firing" {
				queue <- a
			}
		}
	}, nil
}

func allow(w http.ResponseWriter, r *http.Request) {
	var review admissionv1.AdmissionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true}
	review.Request = nil
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

func watchNodes(ctx context.Context, kubeconfig string) error {
	ctrllog.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	trim := func(o any) (any, error) {
		if n, ok := o.(*corev1.Node); ok {
			return kube.Trim(n), nil
		}
		return o, nil
	}
	nodes, err := cache.New(config, cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Node{}: {Transform: trim}}})
	if err != nil {
		return err
	}
	if _, err := nodes.GetInformer(ctx, &corev1.Node{}, cache.BlockUntilSynced(false)); err != nil {
		return err
	}
	go func() { _ = nodes.Start(ctx) }()
	if !nodes.WaitForCacheSync(ctx) {
		return errors.New("the cache of Nodes was not filled")
	}
	return nil
}
