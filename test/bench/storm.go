package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

// A storm is an alert for every node at the same time, posted by Alertmanager itself, in one group
// for each node.
func (y *yard) measureStorms() error {
	size := y.fleet.size
	if err := y.calm(); err != nil { // an earlier part may have left alerts, and Drydock does not write an alert that is already there
		return err
	}
	var took, bare, answers []time.Duration
	var gap time.Duration
	var lost int
	var refused float64
	for round := range y.rounds {
		if round == 0 {
			y.profileWhile("storm", max(5, size/200)) // long enough for the whole storm
		}
		s, err := y.storm()
		if err != nil {
			return err
		}
		took, answers, lost, refused, gap = append(took, s.took), append(answers, s.answers...), lost+s.lost, refused+s.refused, max(gap, s.leaseGap)
		if round == y.rounds-1 {
			if err := y.afterStorm(); err != nil {
				return err
			}
		}
		if err := y.calm(); err != nil {
			return err
		}
		_, all, err := y.fleet.everywhere(y.ctx, size, workersAtOnce, y.touch)
		if err != nil {
			return err
		}
		bare = append(bare, all)
	}
	if err := y.deliver(false); err != nil {
		return err
	}
	least, err := y.bareStorms()
	if err != nil {
		return err
	}
	rate, floor := float64(size)/median(took).Seconds(), float64(size)/median(bare).Seconds()
	wanted := 90.0
	if size > 1000 {
		wanted = 80
	}
	y.table.add(row{
		what: "as many alerts as nodes at once, from Alertmanager, until each is on its Node", nodes: size,
		measured:  fmt.Sprintf("%.2f s, %.0f a second", median(took).Seconds(), rate),
		reference: fmt.Sprintf("bare PATCH, %d workers: %.0f a second", workersAtOnce, floor),
		ratio:     fmt.Sprintf("%.0f%%", 100*rate/floor), target: fmt.Sprintf("≥ %.0f%%", wanted), verdict: reached(100*rate >= wanted*floor),
	})
	y.table.add(row{
		what: "… beside a receiver that only writes", nodes: size, measured: fmt.Sprintf("%.0f a second", rate),
		reference: fmt.Sprintf("the same storm from the same Alertmanager, each alert written to its Node and nothing else done: %.0f a second", float64(size)/least.Seconds()),
		ratio:     fmt.Sprintf("%.0f%%", 100*least.Seconds()/median(took).Seconds()), target: "-",
	})
	y.table.add(row{
		what: "… lost", nodes: size, measured: fmt.Sprintf("%d of %d", lost, size*y.rounds), reference: fmt.Sprintf("posts answered 503, and brought again by Alertmanager: %.0f", refused),
		ratio: "-", target: "0; none", verdict: reached(lost == 0 && refused == 0),
	})
	y.table.add(row{
		what: "… meanwhile: a person's word is answered", nodes: size, measured: fmt.Sprintf("%s, slowest of %d %s", ms(median(answers)), len(answers), ms(quantile(answers, 1))),
		reference: fmt.Sprintf("longest time between two renewals of the leader's lease: %.1f s", gap.Seconds()), ratio: "-", target: "flows; lease < 10 s", verdict: reached(gap < 10*time.Second && len(answers) > 0),
	})
	return nil
}

type stormed struct {
	took, leaseGap time.Duration
	answers        []time.Duration
	lost           int
	refused        float64
}

func (y *yard) allAlerts() []map[string]any {
	alerts := make([]map[string]any, y.fleet.size)
	for i := range alerts {
		alerts[i] = alertOf(nodeName(i))
	}
	return alerts
}

func (y *yard) storm() (s stormed, err error) {
	before, err := y.metrics()
	if err != nil {
		return s, err
	}
	asking, stop := context.WithCancel(y.ctx)
	asked := make(chan []time.Duration)
	go func() { asked <- y.askMeanwhile(asking) }()
	s.took, s.leaseGap, err = y.written()
	stop()
	s.answers = <-asked
	if err != nil {
		return s, err
	}
	after, err := y.metrics()
	if err != nil {
		return s, err
	}
	s.refused = after[`drydock_posts_total{code="503"}`] - before[`drydock_posts_total{code="503"}`]
	nodes, err := y.lab.Client().CoreV1().Nodes().List(y.ctx, metav1.ListOptions{}) // not from the API server's cache, which may not have the last writes yet
	if err != nil {
		return s, err
	}
	for i := range nodes.Items {
		if _, ok := nodes.Items[i].Annotations[keyOf(nodes.Items[i].Name)]; !ok {
			s.lost++
		}
	}
	return s, nil
}

// took is the time until the API server has answered the last write of an alert. leaseGap is the
// longest time without a renewal of the leader's Lease.
func (y *yard) written() (took, leaseGap time.Duration, err error) {
	mark := y.audit.mark()
	began := time.Now()
	if err := y.post(y.allAlerts(), began.Add(time.Hour)); err != nil {
		return 0, 0, err
	}
	here := map[string]bool{}
	ended, renewed := began, began
	err = y.until(5*time.Minute, "every alert to be on its Node", func() (bool, error) {
		var calls []call
		var err error
		calls, mark, err = y.audit.since(mark)
		for _, c := range calls {
			switch {
			case c.kind() == "patch nodes" && c.ResponseStatus.Code == http.StatusOK && !here[c.ObjectRef.Name]:
				here[c.ObjectRef.Name] = true
				if c.Ended.After(ended) {
					ended = c.Ended
				}
			case c.kind() == "update leases (leader)":
				leaseGap, renewed = max(leaseGap, c.Ended.Sub(renewed)), c.Ended
			}
		}
		return len(here) >= y.fleet.size, err
	})
	return ended.Sub(began), leaseGap, err
}

// bareStorms measures the same storms with a receiver that only writes, as Drydock's own user.
// Drydock is stopped meanwhile.
func (y *yard) bareStorms() (time.Duration, error) {
	if err := y.stopDrydock(); err != nil {
		return 0, err
	}
	kubeconfig, err := y.lab.ServiceAccountKubeconfig(y.ctx, lab.Namespace, lab.Namespace, "")
	if err != nil {
		return 0, err
	}
	receiver, url, err := y.startReference(referenceReceiver, kubeconfig)
	if err != nil {
		return 0, err
	}
	defer receiver.Kill()
	var took []time.Duration
	for range y.rounds {
		if err := y.lab.SetWebhook(y.ctx, lab.WebhookTarget{URL: url + "/v1/alerts"}); err != nil {
			return 0, err
		}
		one, _, err := y.written()
		if err != nil {
			return 0, err
		}
		took = append(took, one)
		if err := y.post(y.allAlerts(), time.Now()); err != nil {
			return 0, err
		}
		if err := y.posted(); err != nil {
			return 0, err
		}
		if err := y.cleared(); err != nil {
			return 0, err
		}
	}
	if err := y.deliver(false); err != nil {
		return 0, err
	}
	if err := y.withEnv(func() error { return y.drydock.Start(y.ctx) }); err != nil {
		return 0, err
	}
	return median(took), y.awaitLead()
}

func keyOf(node string) string {
	labels, _ := alertOf(node)["labels"].(map[string]string)
	return remediations.AlertPrefix + remediations.Fingerprint(labels)
}

// Drydock can only refuse this annotation. The result is how long each request waited for its
// answer.
func (y *yard) askMeanwhile(ctx context.Context) (answers []time.Duration) {
	node := nodeName(1)
	for ctx.Err() == nil {
		began := time.Now()
		if err := y.refused(ctx, node); err != nil {
			if ctx.Err() == nil {
				answers = append(answers, time.Minute)
			}
			return answers
		}
		answers = append(answers, time.Since(began))
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return answers
}

// It watches the node until Drydock has removed the annotation. Polling would be additional load.
func (y *yard) refused(ctx context.Context, node string) error {
	limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute) // a person who requested something waits for the answer this long
	defer cancel()
	w, err := y.lab.Client().CoreV1().Nodes().Watch(limit, metav1.ListOptions{FieldSelector: "metadata.name=" + node})
	if err != nil {
		return err
	}
	defer w.Stop()
	if err := y.fleet.patch(limit, node, remediations.ResetKey, "true"); err != nil {
		return err
	}
	given := false
	for e := range w.ResultChan() {
		n, ok := e.Object.(*corev1.Node)
		if !ok {
			continue
		}
		_, there := n.Annotations[remediations.ResetKey]
		if given && !there {
			return nil
		}
		given = given || there
	}
	return context.DeadlineExceeded
}

func (y *yard) afterStorm() error {
	resident, anonymous, peak, err := memoryOf(y.drydock.PID())
	if err != nil {
		return err
	}
	most := 90.0
	if y.fleet.size > 1000 {
		most = 150
	}
	y.table.add(row{
		what: "resident memory, leader, after the storm", nodes: y.fleet.size, measured: fmt.Sprintf("%.0f MB (%.0f anonymous), at most %.0f", resident, anonymous, peak),
		reference: fmt.Sprintf("%d nodes of %.1f KiB, GOMEMLIMIT %s", y.fleet.size, float64(y.fleet.bytes)/1024, memoryLimit),
		ratio:     "-", target: fmt.Sprintf("≤ %.0f MB", most), verdict: reached(resident <= most),
	})
	if err := y.posted(); err != nil { // what Alertmanager gave up, it posts again
		return err
	}
	y.sleep(20 * time.Second) // until the abandoned connections are closed, too
	if err := y.measureUnchanged(); err != nil {
		return err
	}
	y.profileWhile("standing", 55)
	_, used, err := y.minute()
	if err != nil {
		return err
	}
	y.addCPU("a storm that stands: CPU", used)
	return nil
}
