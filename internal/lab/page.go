package lab

import (
	"bufio"
	"bytes"
	"cmp"
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

// Page is a running `kubectl drydock ui`.
type Page struct {
	// Address is what the command printed first. It contains a token that opens the page once.
	// Origin is the address without the path.
	Address, Origin string
	addresses       chan string
	Stop            func()
}

var pageAddress = regexp.MustCompile(`(http://127\.0\.0\.1:\d+)/\?token=\S+`)

// Fresh returns an address that was not opened yet.
func (p *Page) Fresh(ctx context.Context) (string, error) {
	select {
	case a := <-p.addresses:
		return a, nil
	case <-ctx.Done():
		return "", fmt.Errorf("waiting for the next address of kubectl drydock ui: %w", ctx.Err())
	}
}

// PluginProgram returns the path of kubectl-drydock, and compiles it if needed.
func (l *Lab) PluginProgram(ctx context.Context) (string, error) {
	path := filepath.Join(l.dir, "bin", "kubectl-drydock")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	return path, programs.Compile(ctx, path, "./cmd/kubectl-drydock")
}

// FromHome, as a kubeconfig, means the administrator's kubeconfig in ~/.kube/config. No flag names
// it, so the page shows commands without its path.
const FromHome = "~"

// StartPage runs `kubectl drydock ui` as the user of the kubeconfig, by default the administrator,
// and returns when the command has printed its address. It ends with this process, or with Stop.
func (l *Lab) StartPage(ctx context.Context, kubeconfig string, args ...string) (*Page, error) {
	program, err := l.PluginProgram(ctx)
	if err != nil {
		return nil, err
	}
	env := []string{"HOME=" + l.dir, "PATH=" + os.Getenv("PATH")}
	if kubeconfig == FromHome {
		env = append(env, "KUBECONFIG="+l.AdminKubeconfig())
	} else {
		args = append([]string{"--kubeconfig", cmp.Or(kubeconfig, l.AdminKubeconfig())}, args...)
	}
	var problems bytes.Buffer
	cmd := exec.Command(program, append([]string{"ui", "--no-browser"}, args...)...) //nolint:noctx // Stop ends it
	cmd.Env = env
	cmd.Stderr = &problems
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("starting the page: %w", err)
	}
	if err := spawn(cmd); err != nil {
		return nil, fmt.Errorf("starting the page: %w", err)
	}
	const many = 256 // more often than any test opens the page
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
