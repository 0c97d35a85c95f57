package main

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	"k8s.io/client-go/dynamic"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/intake"
	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/remediations/providers/sidecar"
	sidecarsettings "drydock.dev/drydock/remediations/providers/sidecar/settings"
)

type sidecars struct {
	kube.Pods
	sidecar.Clients
}

func joinSidecars(j *joined, o *engine.Options) (intake.Carrier, error) {
	all, ok := config.Of[sidecarsettings.Sidecars](j.cfg)
	if !ok {
		return nil, nil
	}
	objects, err := dynamic.NewForConfig(j.writes)
	if err != nil {
		return nil, fmt.Errorf("making the API server's client for SeiNodes: %w", err)
	}
	clients, err := sidecar.Configured(all, sidecar.Options{Client: j.clients, Dynamic: objects, Registerer: j.reg, Now: time.Now},
		func(t sidecarsettings.TokenFor) sidecar.Token {
			return (&kube.Tokens{Client: j.clients, Namespace: t.ServiceAccount.Namespace, Name: t.ServiceAccount.Name, Audiences: t.Audiences, Now: time.Now}).Token
		})
	if err != nil {
		return nil, err
	}
	out := sidecars{Pods: kube.Pods{Client: j.clients, Namespaces: all.Namespaces()}, Clients: clients}
	o.Sidecars = out
	return intake.OfPods(out.Hosts), nil
}

func newTask() string { return uuid.NewString() }
