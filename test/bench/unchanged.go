package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// Alertmanager posts unchanged alerts again at repeat_interval.
func (y *yard) measureUnchanged() error {
	y.profileWhile("unchanged", 5)
	for _, perPost := range []int{1, 64} {
		var posts [][]byte
		for i := 0; i+perPost <= y.fleet.size; i += perPost {
			var nodes []string
			for k := range perPost {
				nodes = append(nodes, nodeName(i+k))
			}
			posts = append(posts, payload(nodes...))
		}
		mark, began := y.audit.mark(), time.Now()
		var ours, theirs []float64
		for range y.rounds {
			rate, err := y.postAll(y.drydock.ReceiverURL, posts, perPost)
			if err != nil {
				return err
			}
			ours = append(ours, rate)
			if rate, err = y.postAll(y.ginURL+"/v1/alerts", posts, perPost); err != nil {
				return err
			}
			theirs = append(theirs, rate)
		}
		calls, _, err := y.audit.since(mark)
		if err != nil {
			return err
		}
		regular := 1 + int(time.Since(began)/time.Minute) // even without posts, an open breaker is saved once a minute
		var writes []string
		for _, c := range calls {
			switch {
			case c.kind() == "update configmaps" && regular > 0:
				regular--
			case c.write() && !c.apart():
				writes = append(writes, fmt.Sprintf(" (%s %s)", c.kind(), c.ObjectRef.Name))
			}
		}
		a, b := median(ours), median(theirs)
		y.table.add(row{
			what: fmt.Sprintf("the same again, unchanged, %d a post", perPost), nodes: y.fleet.size, measured: fmt.Sprintf("%.0f alerts a second, %d writes%s", a, len(writes), strings.Join(writes[:min(5, len(writes))], "")),
			reference: fmt.Sprintf("a bare gin handler that decodes them: %.0f a second", b), ratio: fmt.Sprintf("%.0f%%", 100*a/b),
			target: "≥ 70%, no write", verdict: reached(a >= 0.7*b && len(writes) == 0),
		})
	}
	return nil
}

// postAll posts for about a second over 16 connections, and returns how many alerts per second were
// accepted.
func (y *yard) postAll(url string, posts [][]byte, perPost int) (float64, error) {
	const lasts = time.Second
	began := time.Now()
	g, ctx := errgroup.WithContext(y.ctx)
	counts := make([]int, workersAtOnce)
	for w := range workersAtOnce {
		g.Go(func() error {
			for i := w; time.Since(began) < lasts; i += workersAtOnce {
				if _, err := send(ctx, http.MethodPost, url, y.token, posts[i%len(posts)]); err != nil {
					return err
				}
				counts[w]++
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return 0, err
	}
	total := 0
	for _, c := range counts {
		total += c
	}
	return float64(total*perPost) / time.Since(began).Seconds(), nil
}
