package browser

import (
	"context"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// Work is the processor time that a tab's main thread has used. Other load on the machine hardly
// changes it.
type Work struct {
	// All also includes painting.
	All, Script, Style, Layout time.Duration
}

// Since returns the difference to an earlier reading.
func (w Work) Since(earlier Work) Work {
	return Work{w.All - earlier.All, w.Script - earlier.Script, w.Style - earlier.Style, w.Layout - earlier.Layout}
}

// Work returns the processor time that the tab has used so far.
func (t *Tab) Work(ctx context.Context) (Work, error) {
	var w Work
	err := t.bounded(ctx, "reading what the tab did", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		if _, err := cdp.Call(ctx, target, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
			return err
		}
		read, err := cdp.Call(ctx, target, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			return err
		}
		for _, m := range read.Metrics {
			took := time.Duration(m.Value * float64(time.Second))
			switch m.Name {
			case "TaskDuration":
				w.All = took
			case "ScriptDuration":
				w.Script = took
			case "RecalcStyleDuration":
				w.Style = took
			case "LayoutDuration":
				w.Layout = took
			}
		}
		return nil
	}))
	return w, err
}
