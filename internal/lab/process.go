package lab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// Patience bounds every wait of the lab and of its tests. A wait takes that long only if something
// is broken: Patience is far longer than needed, even on a busy machine.
const Patience = 10 * time.Minute

// Spec describes a process: what it runs, and when it is ready.
type Spec struct {
	Name string // its name in errors
	Path string
	Args []string
	Env  []string // in addition to this process's environment
	Dir  string   // the working directory; if empty, this process's
	Log  string   // the file for the output, which is appended

	// ReadyURL is polled until it answers 200. Empty means that a started process is ready.
	ReadyURL string
	// ReadyClient polls ReadyURL. Nil means http.DefaultClient.
	ReadyClient *http.Client
	// ReadyWithin bounds the wait for readiness. 0 means Patience.
	ReadyWithin time.Duration
	// Again restarts the process a second after it ended by itself, but not after Kill or Stop.
	Again bool
}

// Process is a child process that dies with this process. It can be killed and started again.
type Process struct {
	spec Spec

	mu       sync.Mutex
	cmd      *exec.Cmd
	done     chan struct{} // closed when cmd has ended
	err      error         // the result of cmd.Wait, once done is closed
	stopping bool          // Kill or Stop was called
}

// StartProcess starts the process and waits until it is ready. The context bounds the wait, not the
// process. A process that does not become ready is killed, and the error shows the end of its log.
func StartProcess(ctx context.Context, spec Spec) (*Process, error) {
	p := &Process{spec: spec}
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Start starts an ended process again, and waits until it is ready.
func (p *Process) Start(ctx context.Context) error {
	p.mu.Lock()
	p.stopping = false
	p.mu.Unlock()
	if err := p.launch(); err != nil {
		return fmt.Errorf("starting %s: %w", p.spec.Name, err)
	}
	if err := p.awaitReady(ctx); err != nil {
		p.Kill()
		return fmt.Errorf("starting %s: %w; %s", p.spec.Name, err, p.LogEnd())
	}
	return nil
}

func (p *Process) launch() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.stopping:
		return errors.New("it was told to end")
	case p.cmd != nil && !closed(p.done):
		return errors.New("it is running already")
	}
	if err := os.MkdirAll(filepath.Dir(p.spec.Log), 0o755); err != nil {
		return fmt.Errorf("making the log's folder: %w", err)
	}
	log, err := os.OpenFile(p.spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("opening the log: %w", err)
	}
	defer log.Close()                                // the child keeps a descriptor of its own
	cmd := exec.Command(p.spec.Path, p.spec.Args...) //nolint:noctx // it outlives the context of its start
	cmd.Dir = p.spec.Dir
	cmd.Env = append(os.Environ(), p.spec.Env...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := spawn(cmd); err != nil {
		return err
	}
	done := make(chan struct{})
	p.cmd, p.done, p.err = cmd, done, nil
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.err = err
		again := p.spec.Again && !p.stopping
		p.mu.Unlock()
		close(done)
		if again {
			time.AfterFunc(time.Second, func() { _ = p.launch() }) // if this fails, awaitReady or a test times out and shows the log
		}
	}()
	return nil
}

func (p *Process) awaitReady(ctx context.Context) error {
	if p.spec.ReadyURL == "" {
		return nil
	}
	within := p.spec.ReadyWithin
	if within == 0 {
		within = Patience
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("nothing asked yet")
	for {
		ended := p.Done()
		if p.spec.Again && closed(ended) {
			ended = nil // do not watch the end: the process is restarted in a moment
		}
		select {
		case <-ended:
			if !p.spec.Again || portTaken(p.spec.Log) {
				return fmt.Errorf("it ended before it was ready: %w", p.exitError())
			}
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w (last answer: %w)", p.spec.ReadyURL, ctx.Err(), last)
		case <-tick.C:
			err := p.probe(ctx)
			if err == nil {
				return nil
			}
			if ctx.Err() == nil { // the deadline's own error does not mention the process
				last = err
			}
		}
	}
}

func (p *Process) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.spec.ReadyURL, nil)
	if err != nil {
		return err
	}
	client := p.spec.ReadyClient
	if client == nil {
		client = http.DefaultClient
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("it answers %s", res.Status)
	}
	return nil
}

// PID is the process ID of the last start.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.done
}

// Signal sends a signal to the process. It returns an error if the process has ended.
func (p *Process) Signal(sig syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.cmd.Process.Signal(sig); err != nil {
		return fmt.Errorf("sending %s to %s: %w", sig, p.spec.Name, err)
	}
	return nil
}

// Kill ends the process with SIGKILL and returns when it is gone.
func (p *Process) Kill() {
	// The lock is held until the process has ended, because another goroutine may wait for the end
	// to start the process again.
	p.mu.Lock()
	p.stopping = true
	done := p.done
	_ = p.cmd.Process.Kill() // the only error is that it has already ended
	p.mu.Unlock()
	<-done
}

// Stop sends SIGTERM and returns when the process has ended. If the context ends first, Stop kills
// the process. It returns an error if the exit status is not 0.
func (p *Process) Stop(ctx context.Context) error {
	p.mu.Lock()
	p.stopping = true
	p.mu.Unlock()
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := p.Wait(ctx); err != nil {
		p.Kill()
		return err
	}
	return nil
}

// Wait returns when the process has ended. The error for an exit status other than 0 wraps an
// *exec.ExitError and shows the end of the log.
func (p *Process) Wait(ctx context.Context) error {
	select {
	case <-p.Done():
	case <-ctx.Done():
		return fmt.Errorf("waiting for %s to end: %w; %s", p.spec.Name, ctx.Err(), p.LogEnd())
	}
	p.mu.Lock()
	err := p.err
	p.mu.Unlock()
	if err != nil {
		return fmt.Errorf("%s ended: %w; %s", p.spec.Name, err, p.LogEnd())
	}
	return nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
