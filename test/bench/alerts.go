package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"drydock.dev/drydock/internal/lab"
)

var web = &http.Client{
	Timeout:   30 * time.Second,
	Transport: &http.Transport{MaxIdleConnsPerHost: 64, MaxConnsPerHost: 64},
}

func send(ctx context.Context, method, url, token string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := web.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %.200s", url, res.Status, answer)
	}
	return answer, err
}

// The alert is as one of Drydock's rules makes it, with a kilobyte of other content, as real alerts
// have.
func alertOf(node string) map[string]any {
	return map[string]any{
		"labels": map[string]string{
			"alertname": "NodeNotReady", "node": node, "remediation": "node-not-ready", "severity": "critical", "cluster": "bench",
			"namespace": "monitoring", "job": "kube-state-metrics", "instance": "10.0.0.1:8080", "prometheus": "monitoring/k8s",
		},
		"annotations": map[string]string{
			"summary":     "Node " + node + " is not Ready.",
			"description": "The kubelet of " + node + " has not been Ready for 5 minutes, so nothing is scheduled there and its pods are taken away.",
			"runbook_url": "https://example.com/runbooks/NodeNotReady",
		},
		"generatorURL": "http://prometheus.example.com/graph?g0.expr=kube_node_status_condition",
		"startsAt":     since.UTC().Format(time.RFC3339Nano),
	}
}

// Prometheus, too, posts many alerts in one request.
func (y *yard) post(alerts []map[string]any, ends time.Time) error {
	const atOnce = 500
	for len(alerts) > 0 {
		n := min(atOnce, len(alerts))
		for _, a := range alerts[:n] {
			a["endsAt"] = ends.UTC().Format(time.RFC3339Nano)
		}
		body, err := json.Marshal(alerts[:n])
		if err != nil {
			return err
		}
		if _, err := send(y.ctx, http.MethodPost, y.amURL+"/api/v2/alerts", "", body); err != nil {
			return fmt.Errorf("telling Alertmanager: %w", err)
		}
		alerts = alerts[n:]
	}
	return nil
}

func payload(nodes ...string) []byte {
	var alerts []any
	for _, n := range nodes {
		a := alertOf(n)
		a["status"], a["endsAt"] = "firing", "0001-01-01T00:00:00Z"
		a["fingerprint"] = "0000000000000000"
		alerts = append(alerts, a)
	}
	body, err := json.Marshal(map[string]any{
		"version": "4", "groupKey": `{}:{alertname="NodeNotReady", node="` + nodes[0] + `"}`, "truncatedAlerts": 0, "status": "firing", "receiver": "drydock",
		"groupLabels": map[string]string{"alertname": "NodeNotReady", "node": nodes[0]}, "commonLabels": alertOf(nodes[0])["labels"],
		"commonAnnotations": alertOf(nodes[0])["annotations"], "externalURL": "http://alertmanager.example.com", "alerts": alerts,
	})
	if err != nil {
		panic("encoding a payload: " + err.Error()) // cannot fail: the value is plain data
	}
	return body
}

// The Watchdog always fires, so it is sent again and again, as Prometheus would.
func (y *yard) startWatchdog() error {
	watchdog := func() error {
		return y.post([]map[string]any{{"labels": map[string]string{"alertname": "Watchdog"}, "startsAt": since.UTC().Format(time.RFC3339Nano)}}, time.Now().Add(4*time.Minute))
	}
	if err := watchdog(); err != nil {
		return err
	}
	go func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-y.ctx.Done():
				return
			case <-ticker.C:
				_ = watchdog() // if one is lost, the next one follows soon
			}
		}
	}()
	return nil
}

func (y *yard) deliver(yes bool) error {
	target := lab.WebhookTarget{}
	if yes {
		target = lab.WebhookTarget{URL: y.drydock.ReceiverURL, TokenFile: y.tokenFile}
	}
	return y.lab.SetWebhook(y.ctx, target)
}

func (y *yard) metrics() (map[string]float64, error) { return scrape(y.ctx, y.drydock.MetricsURL) }

func scrape(ctx context.Context, url string) (map[string]float64, error) {
	text, err := send(ctx, http.MethodGet, url, "", nil)
	if err != nil {
		return nil, err
	}
	out := map[string]float64{}
	for _, line := range strings.Split(string(text), "\n") {
		if i := strings.LastIndexByte(line, ' '); i > 0 && line[0] != '#' {
			if v, err := strconv.ParseFloat(line[i+1:], 64); err == nil {
				out[line[:i]] = v
			}
		}
	}
	return out, nil
}
