package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/drain"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
)

const touchy = "node-3"

// people is the second act: a person silences a node, and then tries to drain it while it is under
// repair. refused is called when Drydock has refused that.
func people(ctx context.Context, l *lab.Lab, b built, config string, within time.Duration, refused func()) error {
	ctx, cancel := context.WithTimeout(ctx, 2*within)
	defer cancel()
	fmt.Printf("\nThe second act: people come first. Somebody swaps a disk of %s and silences it; then it breaks.\n\n", touchy)
	add := []string{"--alertmanager.url=" + l.AlertmanagerURLs()[0], "silence", "add", "node=" + touchy, "--author=ada", "--comment=swapping a disk", "--duration=1h"}
	id, err := output(ctx, b.amtool, add...)
	if err != nil {
		return err
	}
	shown("amtool "+strings.Join(add[1:], " "), id)
	l.Break(touchy)
	if err := until(ctx, l, func(n *corev1.Node) bool {
		r := remediations.ReadJournal(n).Record
		return r != nil && r.Hold != nil && r.Hold.Reason == remediations.ReasonSilenced
	}); err != nil {
		return fmt.Errorf("the silence held nothing: %w", err)
	}
	if err := why(ctx, l, b.plugin, config); err != nil {
		return err
	}
	if _, err := output(ctx, b.amtool, "--alertmanager.url="+l.AlertmanagerURLs()[0], "silence", "expire", strings.TrimSpace(id)); err != nil {
		return err
	}
	shown("amtool silence expire "+strings.TrimSpace(id), "")
	began := time.Now()
	// An intent alone is not enough: it may be withdrawn if the last check before the call takes
	// too long.
	if err := until(ctx, l, func(n *corev1.Node) bool {
		return n.Labels[remediations.PhaseLabel] == string(remediations.PhaseVerifying)
	}); err != nil {
		return fmt.Errorf("the repair did not go on: %w", err)
	}
	fmt.Printf("The repair went on %.1f s after the silence ended. Meanwhile somebody wants to drain the node,\nand kubectl's own library begins with a cordon:\n\n", time.Since(began).Seconds())
	if err := cordon(ctx, l); err != nil {
		return err
	}
	refused()
	if err := until(ctx, l, func(n *corev1.Node) bool {
		return remediations.InFlight(n) == nil && len(remediations.DecodeHistory(n.Annotations[remediations.HistoryKey])) > 0
	}); err != nil {
		return fmt.Errorf("the repair did not end: %w", err)
	}
	return plugin(ctx, l, b.plugin, "history", touchy)
}

// kubectl cordon and kubectl drain do this first. Drydock's admission must refuse it.
func cordon(ctx context.Context, l *lab.Lab) error {
	node, err := l.Client().CoreV1().Nodes().Get(ctx, touchy, metav1.GetOptions{})
	if err != nil {
		return err
	}
	helper := &drain.Helper{Ctx: ctx, Client: l.Client(), Out: os.Stdout, ErrOut: os.Stdout}
	refused := drain.RunCordonOrUncordon(helper, node, true)
	if refused == nil || !strings.Contains(refused.Error(), "is under repair") {
		return fmt.Errorf("admission did not refuse the cordon of %s: %v", touchy, refused) //nolint:errorlint // it may be nil
	}
	shown("kubectl cordon "+touchy, "error: unable to cordon node \""+touchy+"\": "+refused.Error())
	return nil
}

func shown(command, text string) {
	fmt.Printf("$ %s\n", command)
	if text = strings.TrimRight(text, "\n"); text != "" {
		fmt.Println(text)
	}
	fmt.Println()
}

func output(ctx context.Context, path string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s: %w: %s", filepath.Base(path), err, strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// Of the guards, only the one that holds is shown.
func why(ctx context.Context, l *lab.Lab, program, config string) error {
	const held = 3 // the exit code that means held
	out, err := ask(ctx, l, program, "why", touchy, "--config", config, "--alertmanager", l.AlertmanagerURLs()[0])
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != held {
		return fmt.Errorf("kubectl drydock why %s did not say that the node is held: %v", touchy, err) //nolint:errorlint // it may be nil
	}
	answer, table, _ := strings.Cut(out, "\nGUARD")
	guards := strings.Split("GUARD"+table, "\n")
	for _, row := range guards {
		if strings.Contains(row, "  HOLDS  ") {
			answer += fmt.Sprintf("\n%s\n…\n%s\n… and %d more rows, each with its own value", guards[0], row, len(guards)-2)
		}
	}
	shown("kubectl drydock why "+touchy+" --alertmanager "+l.AlertmanagerURLs()[0], answer)
	return nil
}

func plugin(ctx context.Context, l *lab.Lab, program string, args ...string) error {
	out, err := ask(ctx, l, program, args...)
	if err != nil {
		return err
	}
	shown("kubectl drydock "+strings.Join(args, " "), out)
	return nil
}

func ask(ctx context.Context, l *lab.Lab, program string, args ...string) (string, error) {
	return output(ctx, program, append([]string{"--kubeconfig", l.AdminKubeconfig()}, args...)...)
}

func until(ctx context.Context, l *lab.Lab, wanted func(*corev1.Node) bool) error {
	nodes := l.Client().CoreV1().Nodes()
	changes, err := nodes.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + touchy})
	if err != nil {
		return fmt.Errorf("watching %s: %w", touchy, err)
	}
	defer changes.Stop()
	for {
		select {
		case e := <-changes.ResultChan():
			if n, ok := e.Object.(*corev1.Node); ok && wanted(n) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
