package browser

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Tab is one page of a browser, with cookies of its own.
type Tab struct {
	ctx    context.Context
	cancel func()
	seen   seen
}

// Tab opens an empty tab. Close closes it.
func (b *Browser) Tab() (*Tab, error) {
	t := &Tab{}
	t.ctx, t.cancel = chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext(), chromedp.WithListener(t.notice))
	err := chromedp.Do(t.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, enable := range []func() error{
			func() error { _, err := cdp.Call(ctx, target, network.Enable, network.EnableParams{}); return err },
			func() error { _, err := cdp.Call(ctx, target, log.Enable, cdp.Empty{}); return err },
			func() error { _, err := cdp.Call(ctx, target, audits.Enable, cdp.Empty{}); return err },
			func() error { _, err := cdp.Call(ctx, target, page.Enable, page.EnableParams{}); return err },
		} {
			if err := enable(); err != nil {
				return err
			}
		}
		return nil
	}))
	if err != nil {
		t.cancel()
		return nil, fmt.Errorf("opening a tab: %w", err)
	}
	return t, nil
}

// Close closes the tab and forgets its cookies.
func (t *Tab) Close() { t.cancel() }

func (t *Tab) bounded(ctx context.Context, what string, actions ...chromedp.Action[chromedp.Void]) error {
	_, err := run(ctx, t, chromedp.Steps(actions...))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func run[T any](ctx context.Context, t *Tab, action chromedp.Action[T]) (T, error) {
	inner, cancel := context.WithCancel(t.ctx)
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	result, err := chromedp.Run(inner, action)
	if err != nil && ctx.Err() != nil {
		err = errors.Join(err, context.Cause(ctx))
	}
	return result, err
}

// Open opens the address and waits until the page is loaded.
func (t *Tab) Open(ctx context.Context, url string) error {
	return t.bounded(ctx, "opening the page", chromedp.Navigate(url))
}

// Reload loads the page again.
func (t *Tab) Reload(ctx context.Context) error {
	return t.bounded(ctx, "loading the page again", chromedp.Reload())
}

// Click clicks the element with the CSS selector.
func (t *Tab) Click(ctx context.Context, selector string) error {
	return t.bounded(ctx, "pressing "+selector, chromedp.Click(chromedp.CSS(selector)))
}

// Type types text into the element with the CSS selector.
func (t *Tab) Type(ctx context.Context, selector, text string) error {
	return t.bounded(ctx, "typing into "+selector, chromedp.SendKeys(chromedp.CSS(selector), text))
}

// Press presses keys, as a person without a mouse does.
func (t *Tab) Press(ctx context.Context, keys string) error {
	return t.bounded(ctx, "pressing a key", chromedp.KeyEvent(keys))
}

// Await waits until the JavaScript expression is true, even if the page is replaced in between. It
// checks whenever the browser draws a frame.
func (t *Tab) Await(ctx context.Context, expression string) error {
	for {
		_, err := run(ctx, t, chromedp.Poll[bool]("!!("+expression+")", chromedp.WithPollingTimeout(0)))
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || !changesPage(err) {
			return fmt.Errorf("waiting for %s: %w", expression, err)
		}
	}
}

// The evaluation failed only because the page was replaced meanwhile.
func changesPage(err error) bool {
	for _, says := range []string{"context was destroyed", "Cannot find context", "navigated or closed", "uniqueContextId not found"} {
		if strings.Contains(err.Error(), says) {
			return true
		}
	}
	return false
}

// Eval returns the value of the JavaScript expression.
func Eval[T any](ctx context.Context, t *Tab, expression string) (T, error) {
	result, err := run(ctx, t, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		err = fmt.Errorf("evaluating %s: %w", shortened(expression), err)
	}
	return result, err
}

func shortened(s string) string {
	const most = 200
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

// Size sets the size of the tab's window.
func (t *Tab) Size(ctx context.Context, width, height int64) error {
	return t.bounded(ctx, "sizing the window", chromedp.EmulateViewport(width, height))
}

// Scheme sets the system's color scheme to "light" or "dark".
func (t *Tab) Scheme(ctx context.Context, scheme string) error {
	return t.bounded(ctx, "choosing the colours", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return err
	}))
}

// Screenshot returns a picture of the window as a PNG.
func (t *Tab) Screenshot(ctx context.Context) ([]byte, error) {
	png, err := run(ctx, t, chromedp.CaptureScreenshot())
	if err != nil {
		return nil, fmt.Errorf("taking a screenshot: %w", err)
	}
	return png, nil
}
