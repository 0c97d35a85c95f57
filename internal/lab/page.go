package lab

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"drydock.dev/drydock/internal/lab/programs"
)

// Page is what `kubectl drydock ui` serves.
type Page struct {
	// Address is what the command printed first, with a token that opens the page once; Origin is its beginning.
	Address, Origin string
	// addresses are all that were printed, and that nobody opened.
	addresses chan string
	// Stop ends the command, as Ctrl-C does.
	Stop func()
}

var pageAddress = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/\?token=\S+`)

// Fresh is an address that nobody opened yet. Each one that is opened makes the command print the next.
func (p *Page) Fresh(ctx context.Context) (string, error) {
	select {
	case a := <-p.addresses:
		return a, nil
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for the next address of kubectl drydock ui: %w", ctx.Err())
	}
}

// PluginProgram is kubectl-drydock, compiled from this checkout where it is not there yet.
func (l *Lab) PluginProgram(ctx context.Context) (string, error) {
	path := filepath.Join(l.dir, "bin", "kubectl-drydock")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, programs.Compile(ctx, path, "./cmd/kubectl-drydock")
}

// StartPage runs `kubectl drydock ui` as the owner of the kubeconfig (empty: the administrator), and returns when it has printed its
// address. It ends with this process, or by Stop.
func (l *Lab) StartPage(ctx context.Context, kubeconfig string, args ...string) (*Page, error) {
	program, err := l.PluginProgram(ctx)
	if err != nil {
		return nil, err
	}
	if kubeconfig == "" {
		kubeconfig = l.AdminKubeconfig()
	}
	var problems bytes.Buffer
	cmd := exec.Command(program, append([]string{"ui", "--no-browser", "--kubeconfig", kubeconfig}, args...)...) //nolint:noctx // Stop ends it
	cmd.Env = []string{"HOME=" + l.dir, "PATH=" + os.Getenv("PATH")}
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the page: %w", err)
	}
	if err := spawn(cmd); err != nil {
		return nil, fmt.Errorf("starting the page: %w", err)
	}
	const many = 256 // no test opens a page as often
	found, addresses, ended := make(chan []string, 1), make(chan string, many), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := pageAddress.FindStringSubmatch(lines.Text()); m != nil {
				addresses <- m[0]
				select {
				case found <- m:
				default: // it is not the first
				}
			}
		}
		_ = cmd.Wait()
	}()
	stop := sync.OnceFunc(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
	})
	select {
	case m := <-found:
		return &Page{Address: m[0], Origin: m[1], addresses: addresses, Stop: stop}, nil
	case <-ended:
		return nil, fmt.Errorf("kubectl drydock ui ended before it printed an address: %s", strings.TrimSpace(problems.String()))
	case <-ctx.Done():
		stop()
		return nil, fmt.Errorf("waiting for the address of kubectl drydock ui: %w", ctx.Err())
	}
}
