// Command demo shows Drydock's main job on a whole cluster on this machine. A node breaks,
// Prometheus raises the alert, and Alertmanager posts it. Drydock reboots the node through a
// simulated provider, and proves the cure. The second act shows that people come first: a silence
// holds a repair, and Drydock refuses the drain of a node under repair.
//
// With PROVIDER=http, a small program of the user reboots the machines. Without it, a simulated
// Civo does. With KEEP=1, everything stays up until the command is interrupted.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/programs"
)

// A real cluster takes 50 s to notice a missing heartbeat and 5 minutes to raise the alert. The
// demo is faster.
const (
	ruleFor    = 2 * time.Second
	policyFor  = time.Second
	proofFor   = 2 * time.Second
	rebootTime = 3 * time.Second
	nodes      = 5
	broken     = "node-2"
)

// The tests have longer times than the demo, because a busy machine may exceed the demo's.
type setting struct {
	provider      string // a key of providers
	nodeGrace     time.Duration
	within        time.Duration // the time limit of one act, and of the proof of a reboot
	stormCooldown time.Duration
	// A test may disturb the demo before the first node breaks. May be nil.
	disturb func(*lab.Lab, *machines, *lab.Drydock)
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := demo(ctx, setting{provider: cmp.Or(os.Getenv("PROVIDER"), "civo"), nodeGrace: 6 * time.Second, within: time.Minute, stormCooldown: 10 * time.Minute})
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func demo(ctx context.Context, s setting) error {
	p, ok := providers[s.provider]
	if !ok {
		return fmt.Errorf("PROVIDER is %q, and must be civo or http", s.provider)
	}
	root, err := programs.ModuleRoot()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "drydock-demo-")
	if err != nil {
		return fmt.Errorf("making a folder for Drydock's programs: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	b, err := build(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Println("Starting a cluster of 5 nodes on this machine: the real etcd, kube-apiserver, kube-state-metrics, Prometheus\nand Alertmanager, kube-controller-manager's controllers for nodes, made-up kubelets, " + p.with + ".")
	port, err := lab.FreePort()
	if err != nil {
		return err
	}
	grown := ruleFor
	l, err := lab.Start(ctx, lab.Options{
		Nodes: nodes - len(p.nodes), NodeSpecs: p.nodes, NodeControllers: true, NoPods: true, NodeGrace: s.nodeGrace, RuleFor: &grown, Out: os.Stdout,
		RuleFiles: []string{filepath.Join(root, "rules", "NodeNotReady.yaml")},
	})
	if err != nil {
		return err
	}
	defer l.Stop()
	if err := repair(ctx, l, port, b, s, p); err != nil {
		l.Keep()
		return fmt.Errorf("%w; the logs are in %s", err, l.LogDir())
	}
	return nil
}

type built struct{ folder, amtool, drydock, plugin, receiver string }

// All programs are compiled before the cluster starts: on a busy machine, compilers beside the
// cluster would make nodes miss their heartbeats.
func build(ctx context.Context, dir string) (built, error) {
	b := built{folder: dir, drydock: filepath.Join(dir, "drydock"), plugin: filepath.Join(dir, "kubectl-drydock"), receiver: filepath.Join(dir, "http-receiver")}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		paths, err := programs.Build(ctx, os.Stdout, programs.Demo...)
		b.amtool = paths["amtool"]
		return err
	})
	g.Go(func() error {
		for path, pkg := range map[string]string{b.drydock: "./cmd/drydock", b.plugin: "./cmd/kubectl-drydock", b.receiver: "./deploy/examples/http-receiver"} {
			if err := programs.Compile(ctx, path, pkg); err != nil {
				return err
			}
		}
		return nil
	})
	err := g.Wait()
	return b, err
}

func repair(ctx context.Context, l *lab.Lab, port int, b built, s setting, p provider) error {
	admission, err := lab.NewAdmission(nil)
	if err != nil {
		return err
	}
	token, err := l.InstallDrydock(ctx, admission.Values(map[string]any{"mode": "enforce"}))
	if err != nil {
		return err
	}
	// The machine of the second act stays off until the cordon was refused, so that the cordon
	// meets a node under repair.
	cordon, refused := context.WithCancel(ctx)
	m, err := p.start(ctx, l, b, func(node string) {
		if node == touchy {
			<-cordon.Done()
		}
	})
	if err != nil {
		refused()
		return err
	}
	defer m.Close()
	defer refused()
	config := map[string]any{
		"policies": []any{map[string]any{
			"name": "node-not-ready", "match": []string{`remediation="node-not-ready"`}, "for": policyFor.String(),
			"proofFor": proofFor.String(), "cooldown": "0s",
			"witness": []any{map[string]any{"ready": false}},
			"plan":    []any{map[string]any{"step": "reboot", "wait": s.within.String(), "attempts": 2}},
		}},
		"limits": map[string]any{"stormCooldown": s.stormCooldown.String()},
	}
	if m.http != nil {
		config["providers"] = map[string]any{"http": m.http}
	}
	drydock, err := l.StartDrydock(ctx, token, lab.DrydockOptions{Program: b.drydock, Civo: m.civo, Port: port, Admission: admission, Config: config})
	if err != nil {
		return err
	}
	if err := l.SetWebhook(ctx, lab.WebhookTarget{URL: drydock.ReceiverURL, TokenFile: token}); err != nil {
		return err
	}
	fmt.Printf("\nThe demo shortens what a real cluster does: a node may be silent for %s (usually 50 s), the rule's \"for\" is\n%s (ships with 5 m), the policy's %s (2 m), a cure counts after %s (30 s), a reboot takes %s.\n\n",
		s.nodeGrace, ruleFor, policyFor, proofFor, rebootTime)
	if s.disturb != nil {
		s.disturb(l, m, drydock)
	}
	if err := watch(ctx, l, m.reboots, p.answer, s.within); err != nil {
		return err
	}
	if err := describe(ctx, l); err != nil {
		return err
	}
	if err := people(ctx, l, b, drydock.ConfigFile, s.within, refused); err != nil {
		return err
	}
	fmt.Print("What became of both nodes, as anybody may ask later, also as one HTML page (-o html):\n\n")
	if err := plugin(ctx, l, b.plugin, "report", "--since", "1h"); err != nil {
		return err
	}
	fmt.Printf("\nEndpoints:\n  API server    KUBECONFIG=%s\n  Prometheus    %s\n  Alertmanager  %s\n  Drydock       %s\n  logs          %s\n",
		l.AdminKubeconfig(), l.PrometheusURL(), strings.Join(l.AlertmanagerURLs(), " "), drydock.MetricsURL, l.LogDir())
	if os.Getenv("KEEP") != "1" {
		fmt.Println("\nDone; all of it is taken down. KEEP=1 make demo keeps it up, and shows the same as a page in your browser.")
		return nil
	}
	page, err := l.StartPage(ctx, "", "--config", drydock.ConfigFile, "--alertmanager", l.AlertmanagerURLs()[0])
	if err != nil {
		return err
	}
	defer page.Stop()
	fmt.Printf("\nOpen this page in your browser, and break a node while you look at it. It is what `kubectl drydock ui` shows:\n\n  %s\n\n"+
		"KEEP=1: all of it stays up until Ctrl-C.\n", page.Address)
	<-ctx.Done()
	return nil
}
