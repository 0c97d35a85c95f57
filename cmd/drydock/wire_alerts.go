package main

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/receiver"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/alertmanager"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/kube"
)

// newAlertmanager asks the configured Alertmanagers.
func newAlertmanager(cfg *config.Config, reg prometheus.Registerer) (*alertmanager.Client, error) {
	o := alertmanager.Options{
		HTTPConfig: cfg.Alertmanager.HTTPConfig, Registerer: reg,
		Keep: cfg.Core.Wants, SelfTest: cfg.Core.IsSelfTest, Receiver: cfg.Alertmanager.Receiver,
	}
	for _, u := range cfg.Alertmanager.URLs {
		o.URLs = append(o.URLs, u.String())
	}
	o.Watchdog, o.BlindWhen = cfg.Alertmanager.Selectors()
	return alertmanager.New(o)
}

// newInbox writes the alerts that were taken on their Nodes.
func (j *joined) newInbox() kube.Inbox {
	return kube.Inbox{
		Config: j.cfg.Core, Patch: j.queue.Put, Waiting: j.queue.Waiting, Node: j.fleet.Cached, Carriers: j.carriers, Now: time.Now, Arrived: j.posts.arrivals.Arrived,
		Log:  j.log.WithName("receiver"),
		Room: j.room, Expected: j.engine.Expect, Ended: j.engine.News,
		Full: func(node string) {
			j.tell.Event(node, engine.Event{Warning: true, Reason: "AlertsRefused", Action: "NodeFull", Note: fmt.Sprintf("the node carries %d alerts or %d bytes of Drydock's already; further ones wait until some resolve", remediations.MaxAlertsPerNode, remediations.MaxBytesPerNode)})
		},
	}
}

// newReceiver is the door for Alertmanager's posts.
func (p *program) newReceiver() (*receiver.Server, error) {
	r := p.cfg.Receiver
	var takes engine.AlertRecorder = &p.door
	if p.rescue != nil {
		takes = p.rescue.First(takes)
	}
	return receiver.New(receiver.Options{
		Listen: r.Listen, TokenFile: r.TokenFile, Insecure: r.Insecure, MaxBodyBytes: r.MaxBodyBytes,
		TLS:      receiver.TLSFiles{CertFile: r.TLS.CertFile, KeyFile: r.TLS.KeyFile, ClientCAFile: r.TLS.ClientCAFile},
		Recorder: takes, Refused: p.posts.refuse,
		Oversized: func() {
			p.Event("", engine.Event{Warning: true, Reason: "PostTooLarge", Action: "Refused", Note: fmt.Sprintf("Alertmanager posted more than receiver.maxBodyBytes (%d); group its route by node (group_by: [alertname, node])", r.MaxBodyBytes)})
		},
		Registerer: p.reg, Logger: p.log.WithName("receiver"),
	})
}
