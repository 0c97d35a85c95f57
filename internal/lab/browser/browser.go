// Package browser drives a real Chromium, and records the requests of the page and the errors of
// the browser.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"drydock.dev/drydock/internal/lab/missing"
)

const program = "chromium"

// Supported returns an error that names what this machine lacks for a browser.
func Supported() error {
	if _, err := exec.LookPath(program); err != nil {
		return fmt.Errorf("there is no %s on the PATH: install Debian's package %s", program, program)
	}
	return nil
}

// Need ends a test if this machine has no browser.
func Need(t testing.TB) {
	t.Helper()
	missing.Need(t, "THE PAGE IN A BROWSER", Supported())
}

// Browser is one running Chromium. Its tabs share no cookies.
type Browser struct {
	ctx  context.Context
	stop func()
}

// Start starts a Chromium, which runs until Close.
func Start(ctx context.Context) (*Browser, error) {
	if err := Supported(); err != nil {
		return nil, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.WindowSize(1280, 800),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("no-proxy-server", true),
		chromedp.WSURLReadTimeout(10*time.Minute)) // long, because a busy machine starts Chromium slowly
	allocated, stopAllocator := chromedp.NewExecAllocator(ctx, options...)
	ctx, cancel := chromedp.NewContext(allocated)
	b := &Browser{ctx: ctx, stop: func() { cancel(); stopAllocator() }}
	if err := chromedp.Do(ctx); err != nil {
		b.stop()
		return nil, fmt.Errorf("starting %s: %w", program, errors.Join(err, allocated.Err()))
	}
	return b, nil
}

// Close ends Chromium and all its tabs.
func (b *Browser) Close() { b.stop() }
