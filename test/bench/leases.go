package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"drydock.dev/drydock/remediations/kube"
	"drydock.dev/drydock/remediations/signs"
)

// Leases are read in two ways, in turn: the sample that Drydock reads before its first repair after
// a quiet time, and all leases.
func (y *yard) measureLeases() error {
	config := rest.CopyConfig(y.lab.AdminConfig())
	config.QPS, config.DisableCompression = -1, true
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	fleet := kube.Fleet{Client: client, Now: time.Now}
	var samples, lists []time.Duration
	for range 10 * y.rounds {
		var nodes []string
		for _, i := range signs.LeaseSampling.Sample(y.fleet.size, rand.IntN) { //nolint:gosec // a sample need not be secret
			nodes = append(nodes, nodeName(i))
		}
		if len(nodes) == 0 {
			return nil // Drydock does not sample a fleet of this size
		}
		y.pause(pauseBetween)
		began := time.Now()
		few, err := fleet.Leases(y.ctx, nodes)
		if err != nil {
			return err
		}
		samples = append(samples, time.Since(began))
		y.pause(pauseBetween)
		began = time.Now()
		all, err := fleet.Heartbeats(y.ctx)
		if err != nil {
			return err
		}
		lists = append(lists, time.Since(began))
		if len(few) != len(nodes) || len(all) != y.fleet.size {
			return fmt.Errorf("%d of %d leases were read, and %d of %d listed", len(few), len(nodes), len(all), y.fleet.size)
		}
	}
	bare, _, err := y.fleet.everywhere(y.ctx, min(40, y.fleet.size), 1, y.touch)
	if err != nil {
		return err
	}
	floor := float64(median(bare))
	y.table.add(row{
		what: fmt.Sprintf("the leases that a first repair waits for: a sample of %d", signs.LeaseSampling.Size), nodes: y.fleet.size,
		measured:  fmt.Sprintf("%s, p99 of %d %s", ms(median(samples)), len(samples), ms(quantile(samples, 0.99))),
		reference: fmt.Sprintf("LIST of all leases: %s, p99 %s; bare PATCH, one worker: %s", ms(median(lists)), ms(quantile(lists, 0.99)), ms(median(bare))),
		ratio:     fmt.Sprintf("%.1f PATCHes, the LIST %.1f", float64(median(samples))/floor, float64(median(lists))/floor), target: "less than the LIST", verdict: reached(median(samples) < median(lists)),
	})
	return nil
}
