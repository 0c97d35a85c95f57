package browser

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"

	"github.com/chromedp/cdproto/audits"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

type seen struct {
	mu         sync.Mutex
	requests   []string
	complaints []string
}

// Complaints returns the dialogs, errors, warnings and refusals by the Content-Security-Policy
// since the tab was opened or Forget was called.
func (t *Tab) Complaints() []string {
	t.seen.mu.Lock()
	defer t.seen.mu.Unlock()
	return slices.Clone(t.seen.complaints)
}

// Elsewhere returns the addresses outside origin (scheme://host:port) that the tab requested.
func (t *Tab) Elsewhere(origin string) []string {
	t.seen.mu.Lock()
	defer t.seen.mu.Unlock()
	var foreign []string
	for _, r := range t.seen.requests {
		u, err := url.Parse(r)
		if err != nil || u.Scheme+"://"+u.Host != origin {
			foreign = append(foreign, r)
		}
	}
	return foreign
}

// Requests returns all addresses that the tab requested.
func (t *Tab) Requests() []string {
	t.seen.mu.Lock()
	defer t.seen.mu.Unlock()
	return slices.Clone(t.seen.requests)
}

// Forget resets Complaints and Requests.
func (t *Tab) Forget() {
	t.seen.mu.Lock()
	defer t.seen.mu.Unlock()
	t.seen.requests, t.seen.complaints = nil, nil
}

func (s *seen) asked(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, address)
}

func (s *seen) complaint(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.complaints = append(s.complaints, fmt.Sprintf(format, args...))
}

// It must not block.
func (t *Tab) notice(event any) {
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		t.seen.asked(e.Request.URL)
	case *network.EventWebSocketCreated:
		t.seen.asked(e.URL)
	case *page.EventJavascriptDialogOpening:
		t.seen.complaint("dialog: %s", e.Message)
		go t.dismiss()
	case *runtime.EventExceptionThrown:
		t.seen.complaint("exception: %s %s", e.ExceptionDetails.Text, e.ExceptionDetails.URL)
	case *runtime.EventConsoleAPICalled:
		if level := string(e.Type); level == "error" || level == "warning" || level == "assert" {
			text := ""
			for _, a := range e.Args {
				text += " " + string(a.Value) + a.Description
			}
			t.seen.complaint("console %s:%s", level, text)
		}
	case *log.EventEntryAdded:
		if level := string(e.Entry.Level); level == "error" || level == "warning" {
			t.seen.complaint("log %s: %s: %s %s", level, e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *audits.EventIssueAdded:
		t.seen.complaint("issue: %s", e.Issue.Code)
	}
}

// An open dialog blocks the page. An error is ignored, because the tab may already be closed.
func (t *Tab) dismiss() {
	_ = chromedp.Do(t.ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		return err
	}))
}
