package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/secretfile"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/remediations/sidecar"
)

// sidecars gives the engine the configured providers of sidecars in the core's terms.
type sidecars struct {
	kube.Pods
	sidecar.Clients
}

// joinSidecars joins the configured providers of sidecars.
func joinSidecars(j *joined, o *engine.Options) (kube.Carrier, error) {
	if len(j.cfg.Sidecars) == 0 {
		return nil, nil
	}
	objects, err := dynamic.NewForConfig(j.writes)
	if err != nil {
		return nil, fmt.Errorf("making the API server's client for SeiNodes: %w", err)
	}
	out := sidecars{Pods: kube.Pods{Client: j.clients}, Clients: sidecar.Clients{}}
	for _, s := range j.cfg.Sidecars {
		tls := s.TLS
		client, err := sidecar.New(sidecar.Options{
			Name: s.Name, Selector: s.Selector, Namespaces: s.Namespaces, Scheme: s.Scheme, Port: s.Port,
			HealthPath: s.HealthPath, ReadyCode: s.ReadyCode, NotReadyCode: s.NotReadyCode, HealthTimeout: s.HealthTimeout,
			ApproveMethod: s.ApproveMethod, ApprovePath: s.ApprovePath, ApproveBody: s.ApproveBody, ApproveCodes: s.ApproveCodes, ApproveTimeout: s.ApproveTimeout,
			TLS: &tls, Token: tokenOf(s, j.clients), Owner: s.Owner, Via: s.Via,
			Client: j.clients, Dynamic: objects, Registerer: j.reg, Now: time.Now,
		})
		if err != nil {
			return nil, err
		}
		out.Clients[s.Name] = client
	}
	o.Sidecars = out
	return out.Carrier, nil
}

// maxTokenBytes bounds a token's file.
const maxTokenBytes = 64 << 10

// tokenOf is where the provider's token comes from; nil: none is sent.
func tokenOf(s config.Sidecar, clients kubernetes.Interface) func(context.Context) (string, error) {
	switch {
	case s.TokenFor != nil:
		t := &kube.Tokens{Client: clients, Namespace: s.TokenFor.ServiceAccount.Namespace, Name: s.TokenFor.ServiceAccount.Name, Audiences: s.TokenFor.Audiences, Now: time.Now}
		return t.Token
	case s.TokenFile != "":
		return func(context.Context) (string, error) {
			return secretfile.Token("the sidecar provider "+s.Name+"'s token file", s.TokenFile, maxTokenBytes)
		}
	}
	return nil
}

// newTask gives the id of a sidecar's task.
func newTask() string { return uuid.NewString() }
