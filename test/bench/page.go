package main

import (
	"context"
	"fmt"
	"time"

	"drydock.dev/drydock/internal/lab/browser"
	"drydock.dev/drydock/remediations"
)

// A page that answers a key within this time feels immediate.
const atOnce = 100 * time.Millisecond

// measurePage measures how long the page of `kubectl drydock ui` takes to show all nodes, how late
// it shows a change, and how long it takes to answer a key.
func (y *yard) measurePage() error {
	if err := browser.Supported(); err != nil {
		y.table.add(row{what: "page", nodes: y.fleet.size, measured: "not measured: " + err.Error(), reference: "-", ratio: "-", target: "-"})
		return nil
	}
	page, err := y.lab.StartPage(y.ctx, "", "--alertmanager", y.amURL)
	if err != nil {
		return err
	}
	defer page.Stop()
	chromium, err := browser.Start(y.ctx)
	if err != nil {
		return err
	}
	defer chromium.Close()
	tab, err := chromium.Tab()
	if err != nil {
		return err
	}
	if err := tab.Size(y.ctx, 1280, 800); err != nil {
		return err
	}
	if err := tab.Open(y.ctx, page.Address); err != nil { // now the cookie is set, and the plugin knows all nodes
		return err
	}
	root, err := browser.Eval[string](y.ctx, tab, `location.origin + location.pathname.replace(/[/]$/, "")`)
	if err != nil {
		return err
	}
	all := fmt.Sprintf(`document.querySelectorAll("a[data-node]").length === %d && performance.getEntriesByName("first-contentful-paint").length > 0`, y.fleet.size)
	var paints []time.Duration
	for range y.rounds {
		if err := tab.Open(y.ctx, root+"/"); err != nil {
			return err
		}
		if err := tab.Await(y.ctx, all); err != nil {
			return err
		}
		at, err := browser.Eval[float64](y.ctx, tab, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
		if err != nil {
			return err
		}
		paints = append(paints, milliseconds(at))
	}
	empty, err := y.emptyPaint(tab, root)
	if err != nil {
		return err
	}
	y.table.add(row{
		what: "page: first paint", nodes: y.fleet.size, measured: ms(median(paints)), reference: "a page of the same server without nodes: " + ms(empty),
		ratio: times(float64(median(paints)), float64(empty)), target: "-",
	})
	if err := tab.Open(y.ctx, root+"/"); err != nil {
		return err
	}
	if err := tab.Await(y.ctx, all); err != nil {
		return err
	}
	if err := y.measureDelay(tab); err != nil {
		return err
	}
	return y.measureKeys(tab)
}

// emptyPaint measures the first paint of a page that does not exist.
func (y *yard) emptyPaint(tab *browser.Tab, origin string) (time.Duration, error) {
	var paints []time.Duration
	for range y.rounds {
		if err := tab.Open(y.ctx, origin+"/no-such-page"); err != nil {
			return 0, err
		}
		if err := tab.Await(y.ctx, `performance.getEntriesByName("first-contentful-paint").length > 0`); err != nil {
			return 0, err
		}
		at, err := browser.Eval[float64](y.ctx, tab, `performance.getEntriesByName("first-contentful-paint")[0].startTime`)
		if err != nil {
			return 0, err
		}
		paints = append(paints, milliseconds(at))
	}
	return median(paints), nil
}

// measureDelay measures when a node's tile shows a pause and its end, and for comparison when the
// API server answers the change.
func (y *yard) measureDelay(tab *browser.Tab) error {
	const node = "node-7"
	var seen, answered []time.Duration
	for range y.rounds {
		for _, step := range []struct {
			value any
			state string
		}{{"true bench", "paused"}, {nil, "well"}} {
			began := time.Now()
			if err := y.fleet.patch(y.ctx, node, remediations.PauseKey, step.value); err != nil {
				return err
			}
			answered = append(answered, time.Since(began))
			ctx, cancel := context.WithTimeout(y.ctx, time.Minute)
			err := tab.Await(ctx, fmt.Sprintf(`document.querySelector('a[data-node=%q]').dataset.state === %q`, node, step.state))
			cancel()
			if err != nil {
				return err
			}
			seen = append(seen, time.Since(began))
		}
	}
	const bound = 2 * time.Second
	y.table.add(row{
		what: "page: a change is seen", nodes: y.fleet.size, measured: fmt.Sprintf("%s, p99 %s", ms(median(seen)), ms(quantile(seen, 0.99))),
		reference: "the API server's answer to the change: " + ms(median(answered)), ratio: times(float64(median(seen)), float64(median(answered))),
		target: "≤ 2 s", verdict: reached(quantile(seen, 0.99) <= bound),
	})
	return nil
}

// The page is drawn when the second frame begins.
const settled = `new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))`

const answer = `(async step => {
	const drawn = () => ` + settled + `;
	await drawn();
	const began = performance.now();
	step();
	await drawn();
	return performance.now() - began;
})`

// Each round does all of these steps, and each begins with the same state of the page.
const (
	idleStep   = `() => {}`
	filterStep = `() => {
		const filter = document.getElementById("filter");
		filter.focus();
		filter.value = %q;
		filter.dispatchEvent(new Event("input", {bubbles: true}));
	}`
	arrowStep = `() => {
		if (!document.activeElement.dataset.node) document.querySelector("a[data-node]").focus();
		document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: %q, bubbles: true, cancelable: true}));
	}`
)

// Other load on the machine changes the processor time only little.
type took struct {
	wall time.Duration
	work browser.Work
}

func (t took) String() string {
	return fmt.Sprintf("%s by the clock; %s of processor time (script %s, style %s, layout %s)", ms(t.wall), ms(t.work.All), ms(t.work.Script), ms(t.work.Style), ms(t.work.Layout))
}

func (y *yard) stepping(tab *browser.Tab, step string) (took, error) {
	before, err := tab.Work(y.ctx)
	if err != nil {
		return took{}, err
	}
	wall, err := browser.Eval[float64](y.ctx, tab, answer+"("+step+")")
	if err != nil {
		return took{}, err
	}
	after, err := tab.Work(y.ctx)
	return took{milliseconds(wall), after.Since(before)}, err
}

func (y *yard) measureKeys(tab *browser.Tab) error {
	idle, err := y.slowest(tab, idleStep)
	if err != nil {
		return err
	}
	for _, kind := range []struct {
		what, step string
		inputs     []string
	}{
		{"page: a key in the filter", filterStep, []string{"n", "no", "node-4", "node-42", "state:well", ""}},
		{"page: an arrow key", arrowStep, []string{"ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowLeft"}},
	} {
		var steps []string
		for _, input := range kind.inputs {
			steps = append(steps, fmt.Sprintf(kind.step, input))
		}
		slowest, err := y.slowest(tab, steps...)
		if err != nil {
			return err
		}
		y.table.add(row{
			what: kind.what + ", the slowest of six", nodes: y.fleet.size, measured: slowest.String(), reference: "two frames in which nothing happens: " + idle.String(),
			ratio: times(float64(slowest.wall), float64(idle.wall)), target: "≤ 100 ms", verdict: reached(slowest.wall <= atOnce),
		})
	}
	return nil
}

// slowest returns the median of the slowest step of each round, for each of the two figures
// separately.
func (y *yard) slowest(tab *browser.Tab, steps ...string) (took, error) {
	var walls, all, script, style, layout []time.Duration
	for range y.rounds {
		var worst took
		for _, step := range steps {
			t, err := y.stepping(tab, step)
			if err != nil {
				return took{}, err
			}
			worst.wall, worst.work.All = max(worst.wall, t.wall), max(worst.work.All, t.work.All)
			worst.work.Script, worst.work.Style, worst.work.Layout = max(worst.work.Script, t.work.Script), max(worst.work.Style, t.work.Style), max(worst.work.Layout, t.work.Layout)
		}
		walls, all = append(walls, worst.wall), append(all, worst.work.All)
		script, style, layout = append(script, worst.work.Script), append(style, worst.work.Style), append(layout, worst.work.Layout)
	}
	return took{median(walls), browser.Work{All: median(all), Script: median(script), Style: median(style), Layout: median(layout)}}, nil
}

func milliseconds(f float64) time.Duration { return time.Duration(f * float64(time.Millisecond)) }
