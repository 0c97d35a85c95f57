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
	"drydock.dev/drydock/remediations/intake"
)

func newAlertmanager(cfg *config.Config, reg prometheus.Registerer) (*alertmanager.Client, error) {
	o := alertmanager.Options{
		HTTPConfig: cfg.Alertmanager.HTTPConfig, Registerer: reg,
		Keep: kept(cfg.Core), SelfTest: cfg.Core.IsSelfTest, Receiver: cfg.Alertmanager.Receiver, NodeLabels: cfg.Core.NodeLabels(),
	}
	for _, u := range cfg.Alertmanager.URLs {
		o.URLs = append(o.URLs, u.String())
	}
	o.Watchdog, o.BlindWhen = cfg.Alertmanager.Selectors()
	o.SourceSeen = cfg.Alertmanager.SourceSeen.String()
	return alertmanager.New(o)
}

// kept returns a filter for Alertmanager's alerts. It also keeps alerts whose rule names a policy,
// so that Drydock can report them if no policy matches.
func kept(c *remediations.Config) func(alert map[string]string) bool {
	return func(alert map[string]string) bool { return c.Wants(alert) || c.Meant(alert) }
}

func (j *joined) newIntake() intake.Intake {
	return intake.Intake{
		Config: j.cfg.Core, Charge: j.charge.Lacks, Writer: j.queue, Node: j.fleet.Cached, Carriers: j.carriers, Now: time.Now,
		Arrived: func() {
			j.posts.arrivals.Arrived()
			j.writePath.Doubt()
		},
		Log:  j.log.WithName("receiver"),
		Room: j.room, Expected: j.engine.Expect, Ended: j.engine.News,
		Full: func(node string) {
			j.recorder.Event(node, alertsRefused())
		},
	}
}

func (p *program) newReceiver() (*receiver.Server, error) {
	r := p.cfg.Receiver
	var takes intake.Recorder = &p.door
	if p.rescue != nil {
		takes = p.rescue.First(takes)
	}
	var made func() string
	if p.token != nil {
		made = p.token.Value
	}
	return receiver.New(receiver.Options{
		MadeToken: made,
		Listen:    r.Listen, TokenFile: r.TokenFile, Insecure: r.Insecure, MaxBodyBytes: r.MaxBodyBytes,
		TLS:      receiver.TLSFiles{CertFile: r.TLS.CertFile, KeyFile: r.TLS.KeyFile, ClientCAFile: r.TLS.ClientCAFile},
		Recorder: takes, Refused: p.posts.refuse,
		Oversized:  func(why string) { p.Event("", postTooLarge(why)) },
		Truncated:  func(uint64) { p.Event("", postTruncated()) },
		Registerer: p.reg, Logger: p.log.WithName("receiver"),
	})
}

// alertsRefused is for a Node that already has the largest allowed number or size of alerts.
func alertsRefused() engine.Event {
	return engine.Event{Warning: true, Reason: "AlertsRefused", Action: "NodeFull", Note: fmt.Sprintf(
		"the node has no room for one more alert: it may carry %d alerts that take %d bytes together; further alerts wait until some of them resolve", remediations.MaxAlertsPerNode, remediations.MaxAlertBytes)}
}

func postTooLarge(why string) engine.Event {
	return engine.Event{Warning: true, Reason: "PostTooLarge", Action: "Refused", Note: "Drydock refused a request of Alertmanager: " + why + "; Drydock gets its alerts from the next poll of Alertmanager"}
}

// postTruncated is for a request that lacks alerts because Alertmanager left them out. Its text has
// no number, so that Kubernetes counts repetitions as the same Event.
func postTruncated() engine.Event {
	return engine.Event{Warning: true, Reason: "PostTruncated", Action: "Truncated", Note: "Alertmanager leaves alerts out of its requests to Drydock; set max_alerts to 0 in the receiver's webhook configuration. Drydock gets the missing alerts from the next poll of Alertmanager"}
}
