package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"drydock.dev/drydock/internal/lab"
)

// A fleet with Drydock, and everything that is measured for comparison.
type yard struct {
	options
	ctx       context.Context
	dir       string
	lab       *lab.Lab
	fleet     *fleet
	audit     *audit
	civo      *lab.Civo
	tokenFile string
	token     string
	drydock   *lab.Drydock
	stopped   bool      // the benchmark has stopped Drydock on purpose
	led       time.Time // since when Drydock leads
	pprof     string
	profiling sync.WaitGroup
	amURL     string
	watcher   *lab.Process
	gin       *lab.Process
	ginURL    string
	// The times from the post of an alert until the provider's first request.
	asked []time.Duration
	table *table
}

// A later part may use the state that an earlier one left.
type part struct {
	name string
	run  func(*yard) error
}

var parts = []part{
	{"start", (*yard).measureStart},
	{"idle", (*yard).measureIdle},
	{"leases", (*yard).measureLeases},
	{"latency", (*yard).measureLatency},
	{"repair", (*yard).measureRepair},
	{"storm", (*yard).measureStorms},
	{"poll", (*yard).measurePoll},
	{"admission", (*yard).measureAdmission},
	{"page", (*yard).measurePage},
}

func names() (out []string) {
	for _, p := range parts {
		out = append(out, p.name)
	}
	return append(out, backtestPart)
}

func measure(ctx context.Context, o options, size int, t *table) (err error) {
	began := time.Now()
	fmt.Printf("\n%d nodes\n", size)
	if o.wanted(backtestPart) {
		if err := measureBacktest(ctx, o, size, t); err != nil {
			return fmt.Errorf("%s at %d nodes: %w", backtestPart, size, err)
		}
	}
	if !slices.ContainsFunc(parts, func(p part) bool { return o.wanted(p.name) }) {
		return nil // no chosen part needs a cluster
	}
	dir, err := os.MkdirTemp("", "drydock-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	y := &yard{options: o, ctx: ctx, dir: dir, table: t}
	if err := y.start(size); err != nil {
		if y.lab != nil {
			y.lab.Stop()
		}
		return err
	}
	defer y.lab.Stop()
	defer y.civo.Close()
	for _, p := range parts {
		if !y.wanted(p.name) {
			continue
		}
		fmt.Printf("%6.1f s  %s\n", time.Since(began).Seconds(), p.name)
		if err := p.run(y); err != nil {
			y.lab.Keep()
			select {
			case <-y.left():
				err = fmt.Errorf("%w; Drydock has ended by itself: %s", err, y.drydock.LogEnd())
			default:
			}
			return fmt.Errorf("%s at %d nodes: %w; the logs are in %s", p.name, size, err, y.lab.LogDir())
		}
		if err := y.profile(p.name); err != nil {
			return err
		}
	}
	fmt.Printf("%6.1f s  done\n", time.Since(began).Seconds())
	return nil
}

func (o options) wanted(name string) bool {
	if o.only == "" {
		return true
	}
	for _, w := range strings.Split(o.only, ",") {
		if strings.Contains(name, strings.TrimSpace(w)) {
			return true
		}
	}
	return false
}

func (y *yard) start(size int) (err error) {
	var flags []string
	if y.audit, flags, err = newAudit(y.dir); err != nil {
		return err
	}
	// A lease lasts two thirds of the grace and is renewed four times in that period. That is about
	// 25 writes a second for every size of the fleet.
	grace := time.Duration(max(60, size*24/100)) * time.Second
	y.lab, err = lab.Start(y.ctx, lab.Options{
		Components: lab.ControlPlane, Alertmanagers: 1, NodeGrace: grace, APIServerFlags: flags, Out: os.Stdout, RepeatInterval: 4 * time.Hour,
	})
	if err != nil {
		return err
	}
	y.amURL = y.lab.AlertmanagerURLs()[0]
	if y.fleet, err = newFleet(y.ctx, y.lab.AdminConfig(), size); err != nil {
		return err
	}
	fmt.Printf("         %d nodes of %.1f KiB\n", size, float64(y.fleet.bytes)/1024)
	go y.fleet.beat(y.ctx)
	if err := y.startWatchdog(); err != nil {
		return err
	}
	if y.civo, err = y.lab.StartCivo(y.ctx, lab.CivoOptions{}); err != nil {
		return err
	}
	if y.tokenFile, err = y.lab.PrepareDrydockWith(y.ctx, map[string]any{
		"config":     map[string]any{"mode": "enforce"},
		"admission":  map[string]any{"policy": map[string]any{"enabled": false}},
		"flowSchema": map[string]any{"enabled": true}, // as in a cluster that must be ready for storms
	}); err != nil {
		return err
	}
	token, err := os.ReadFile(y.tokenFile)
	if err != nil {
		return fmt.Errorf("reading the receiver's token: %w", err)
	}
	y.token = strings.TrimSpace(string(token))
	if y.gin, y.ginURL, err = y.startReference(referenceGin); err != nil {
		return err
	}
	if y.watcher, _, err = y.startReference(referenceWatch, y.lab.AdminKubeconfig()); err != nil {
		return err
	}
	return y.startDrydock(lab.DrydockOptions{})
}

func (y *yard) startReference(kind string, args ...string) (*lab.Process, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", fmt.Errorf("finding this program: %w", err)
	}
	port, err := lab.FreePort()
	if err != nil {
		return nil, "", err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	spec := lab.Spec{Name: kind, Path: self, Args: append([]string{"reference", kind, address}, args...), Log: filepath.Join(y.dir, kind+".log")}
	if kind != referenceWebhook {
		spec.ReadyURL = "http://" + address + "/healthz"
	}
	p, err := lab.StartProcess(y.ctx, spec)
	if err != nil {
		return nil, "", err
	}
	context.AfterFunc(y.ctx, p.Kill)
	return p, "http://" + address, nil
}

// As in Drydock's pod.
const memoryLimit = "200MiB"

// The configuration is as in production, with two differences: repairs end soon, and the limits
// allow many repairs at the same time.
func (y *yard) config() map[string]any {
	return map[string]any{
		"alertmanager":   map[string]any{"pollInterval": "15s", "maxStaleness": "30s"},
		"leaderElection": map[string]any{"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s"},
		"limits":         map[string]any{"concurrent": "100%", "concurrentPerZone": "100%", "concurrentPerPool": "100%", "startupGrace": "0s", "repairsPerNode": 99},
		"policies": []any{map[string]any{
			"name": "node-not-ready", "match": []string{`remediation="node-not-ready"`}, "for": "0s", "proofFor": "1s", "cooldown": "0s",
			"witness": "none", // its alerts are about nodes that are Ready
			"plan":    []any{map[string]any{"step": "reboot", "wait": "10m"}},
		}},
	}
}

func (y *yard) startDrydock(o lab.DrydockOptions) error {
	o.Civo, o.Config = y.civo, y.config()
	port, err := lab.FreePort()
	if err != nil {
		return err
	}
	y.pprof = fmt.Sprintf("127.0.0.1:%d", port)
	if err := y.withEnv(func() (err error) {
		y.drydock, err = y.lab.StartDrydock(y.ctx, y.tokenFile, o)
		return err
	}); err != nil {
		return err
	}
	return y.awaitLead()
}

func (y *yard) stopDrydock() error {
	ctx, cancel := context.WithTimeout(y.ctx, 20*time.Second)
	defer cancel()
	y.stopped = true
	return y.drydock.Stop(ctx)
}

// The channel is closed when Drydock has ended by itself. A leader does that if the API server did
// not renew its Lease in time. In a cluster the pod would be restarted. Here, nothing more is
// measured.
func (y *yard) left() <-chan struct{} {
	if y.drydock == nil || y.stopped {
		return nil
	}
	return y.drydock.Done()
}

func (y *yard) awaitLead() error {
	return y.until(time.Minute, "Drydock to lead and to see the Watchdog", func() (bool, error) {
		m, err := y.metrics()
		y.led = time.Now()
		return m["drydock_leader"] == 1 && m[`drydock_blind{cause="alertmanager"}`] == 0, err
	})
}

// until polls, for conditions that cannot be watched.
func (y *yard) until(within time.Duration, what string, done func() (bool, error)) error {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, err := done()
		if ok && err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-y.left():
			return errors.Join(fmt.Errorf("waiting for %s, in vain", what), err)
		case <-deadline.C:
			return fmt.Errorf("waiting for %s: not within %s: %w", what, within, errors.Join(err, context.DeadlineExceeded))
		case <-y.ctx.Done():
			return y.ctx.Err()
		}
	}
}

// A pause makes the figures more exact. With -quick it is shorter.
func (y *yard) sleep(d time.Duration) {
	if y.quick {
		d = min(d, 10*time.Second)
	}
	y.pause(d)
}

func (y *yard) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-y.ctx.Done():
	}
}
