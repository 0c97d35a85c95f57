package historytest

import (
	"fmt"
	"testing"
	"time"
)

// Config is a small configuration of Drydock that reboots a node that is not Ready.
const Config = `
apiVersion: drydock.dev/v1alpha1
kind: Config
mode: observe
receiver: {tokenFile: /token}
alertmanager: {urls: ["http://alertmanager:9093"]}
providers:
  civo: {clusterID: 9c89d8b9-463d-45f2-8928-455eb3f3726a, region: LON1, apiKeyFile: /key}
policies:
- name: node-not-ready
  match: ['remediation="node-not-ready"']
  witness: [{ready: false}]
  plan: [{step: reboot, wait: 10m}]
`

// Outage returns a recording of the six hours before until. One of five nodes, n3, is not Ready for
// an hour, from four hours before until. During that hour the given series have the value 1.
func Outage(t testing.TB, until time.Time, alerts ...string) *Recording {
	t.Helper()
	r := New(t)
	for at := until.Add(-6 * time.Hour); at.Before(until); at = at.Add(30 * time.Second) {
		var machines []Machine
		for i := range 5 {
			machines = append(machines, Machine{Name: fmt.Sprintf("n%d", i), Created: until.Add(-24 * time.Hour)})
		}
		firing := map[string]float64{}
		if left := until.Sub(at); left > 3*time.Hour && left <= 4*time.Hour {
			machines[3].Ready = "unknown"
			for _, series := range alerts {
				firing[series] = 1
			}
		}
		r.Scrape(at, "ksm", KubeStateMetrics("ksm", machines...))
		r.Scrape(at, "rules", firing)
	}
	return r
}
