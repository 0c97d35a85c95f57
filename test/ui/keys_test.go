package ui

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/browser"
	"drydock.dev/drydock/remediations"
)

// shownTiles is the JavaScript expression for the nodes whose tiles are visible, in the page's
// order.
const shownTiles = `[...document.querySelectorAll("a[data-node]")].filter(a => a.getClientRects().length > 0).map(a => a.dataset.node)`

// focused is the JavaScript expression for the node whose tile has the focus.
const focused = `document.activeElement.dataset.node`

// shown waits until the page shows exactly these nodes.
func shown(t *testing.T, at *browser.Tab, why string, nodes ...string) {
	t.Helper()
	await(t, at, why, fmt.Sprintf(`JSON.stringify(%s) === JSON.stringify(%s)`, shownTiles, quoted(append([]string{}, nodes...))))
}

// filter types the text into the filter, in place of the old text.
func filter(t *testing.T, at *browser.Tab, text string) {
	t.Helper()
	typing, err := browser.Eval[bool](t.Context(), at, `document.activeElement.id === "filter"`)
	require.NoError(t, err)
	if typing {
		require.NoError(t, at.Press(t.Context(), kb.Escape))
	}
	require.NoError(t, at.Press(t.Context(), "/"))
	await(t, at, "the filter has the focus", `document.activeElement.id === "filter"`)
	_, err = browser.Eval[bool](t.Context(), at, `(document.activeElement.select(), true)`) // remove the slash that opened the filter: chromedp has typed it
	require.NoError(t, err)
	require.NoError(t, at.Press(t.Context(), text))
}

// The filter finds a node by everything that its tile knows. The address contains the filter.
func TestTheFilterFindsByAnything(t *testing.T) {
	c := newCluster(t)
	c.record("node-2", remediations.PhasePending, func(r *remediations.Record) {
		r.Policy = "node-disk-pressure"
		r.Hold = &remediations.Hold{Reason: remediations.ReasonCooldown, Message: "the last repair ended two minutes ago", Since: r.Since}
	})
	at, p := tab(t), c.ui("")
	c.open(at, p, "/")
	await(t, at, "the node is held", hasState("node-2", "held"))
	all, err := browser.Eval[[]string](t.Context(), at, shownTiles)
	require.NoError(t, err)
	require.Equal(t, []string{"node-0", "node-3", "node-6", "node-9", "node-12"}, all[:5], "names are ordered as people do")
	for text, want := range map[string][]string{
		"node-2":                    {"node-21", "node-22", "node-2", "node-20", "node-23"},
		"state:held":                {"node-2"},
		"Held cooldown":             {"node-2"},
		"policy:node-disk-pressure": {"node-2"},
		"step:reboot":               {"node-2"},
		"reason:Cooldown":           {"node-2"},
		"ended minutes":             {"node-2"},
		"zone:zone-1 node-1":        {"node-1", "node-10", "node-13", "node-16", "node-19"},
		"pool:workers node-17":      {"node-17"},
		"state:held zone:zone-1":    {},
	} {
		filter(t, at, text)
		shown(t, at, text, want...)
		await(t, at, "the page says how many", fmt.Sprintf(`document.getElementById("shown").textContent === "%d of %d nodes"`, len(want), fleet))
	}
	filter(t, at, "zone:zone-2 node-23")
	shown(t, at, "one node", "node-23")
	require.NoError(t, at.Reload(t.Context()))
	shown(t, at, "the address keeps the filter", "node-23")
	// Changes that arrive meanwhile are filtered, too.
	filter(t, at, "state:paused")
	shown(t, at, "none is paused")
	c.patch("node-4", map[string]any{remediations.PauseKey: "true disk"}, nil)
	shown(t, at, "one is paused now", "node-4")
	require.NoError(t, at.Press(t.Context(), kb.Escape))
	await(t, at, "Esc clears the filter", fmt.Sprintf(`%s.length === %d && location.search === ""`, shownTiles, fleet))
	require.NoError(t, at.Click(t.Context(), "[data-count=paused] a"))
	shown(t, at, "a count is a filter", "node-4")
}

func TestArrowsMoveAndEnterOpens(t *testing.T) {
	c := newCluster(t)
	at, p := tab(t), c.ui("")
	require.NoError(t, at.Size(t.Context(), 700, 900)) // so that there are few columns, and rows that are not full
	c.open(at, p, "/")
	press := func(key, want string) {
		t.Helper()
		require.NoError(t, at.Press(t.Context(), key))
		await(t, at, "the focus is on "+want, focused+" === "+quoted(want))
	}
	// These are a tile's column, and its row among all rows.
	place := func(node string) (x, y float64) {
		t.Helper()
		at, err := browser.Eval[[]float64](t.Context(), at, fmt.Sprintf(`(r => [r.left, r.top + scrollY])(%s.getBoundingClientRect())`, tile(node)))
		require.NoError(t, err)
		return at[0], at[1]
	}
	press(kb.ArrowRight, "node-0")
	press(kb.ArrowRight, "node-3")
	press(kb.ArrowLeft, "node-0")
	columns, err := browser.Eval[int](t.Context(), at, `getComputedStyle(document.querySelector(".tiles")).gridTemplateColumns.split(" ").length`)
	require.NoError(t, err)
	require.Equal(t, 3, columns)
	press(kb.ArrowRight, "node-3")
	for _, down := range []string{"node-12", "node-21", "node-4", "node-13", "node-22", "node-5"} { // zone-0, zone-1 and zone-2 have eight nodes each
		x, y := place("node-3")
		press(kb.ArrowDown, down)
		nowX, nowY := place(down)
		require.InDelta(t, x, nowX, 1, "%s is in the same column", down)
		require.Greater(t, nowY, y)
	}
	press(kb.ArrowUp, "node-22")
	press(kb.ArrowUp, "node-13")
	// Tiles that the filter hides are skipped.
	filter(t, at, "node-1")
	press(kb.ArrowDown, "node-12")
	press(kb.ArrowRight, "node-15")
	press(kb.ArrowRight, "node-18")
	press(kb.ArrowRight, "node-1")
	tabStops, err := browser.Eval[int](t.Context(), at, `document.querySelectorAll('a[data-node][tabindex="0"]').length`)
	require.NoError(t, err)
	require.Equal(t, 1, tabStops, "one tile alone is reached with Tab")
	require.NoError(t, at.Press(t.Context(), kb.Enter))
	await(t, at, "Enter opens the node", `location.pathname.endsWith("/nodes/node-1") && document.readyState === "complete"`)
	require.NoError(t, at.Press(t.Context(), "?"))
	await(t, at, "? helps", `document.getElementById("help").open`)
	require.NoError(t, at.Press(t.Context(), kb.Escape))
	await(t, at, "Esc closes it", `!document.getElementById("help").open`)
}

// With many nodes a tile is only a square. A screen reader still reads what the square does not
// show. Tiles that the filter finds show their names.
func TestManyNodesAreSquares(t *testing.T) {
	l := lab.New(t, lab.Options{Components: lab.APIServerOnly, Nodes: 1})
	c := settled(t, l)
	const many = 160
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(16)
	for i := 1; i < many; i++ {
		g.Go(func() error {
			return l.AddNode(ctx, lab.NodeSpec{Name: fmt.Sprintf("node-%d", i), Zone: "zone-0", Pool: "workers"})
		})
	}
	require.NoError(t, g.Wait())
	at, p := tab(t), c.ui("")
	c.open(at, p, "/")
	await(t, at, "all nodes are there", fmt.Sprintf(`%s.length === %d && document.getElementById("groups").dataset.density === "dense"`, shownTiles, many))
	markLoaded(t, at)
	said := func(node, word string) string {
		return fmt.Sprintf(`%s.getAttribute("aria-label") === %q`, tile(node), node+": "+word)
	}
	await(t, at, "a square has its name for who does not see it", said("node-7", "well"))
	require.NoError(t, at.Press(t.Context(), kb.ArrowRight))
	await(t, at, "the focus is on a tile, and the bar names it", focused+` && document.getElementById("pointed").textContent === document.activeElement.getAttribute("aria-label")`)
	c.patch("node-7", map[string]any{remediations.PauseKey: "true disk"}, nil)
	await(t, at, "a square changes with its node", hasState("node-7", "paused")+" && "+said("node-7", "paused"))
	notLoadedAgain(t, at)
	name := fmt.Sprintf(`getComputedStyle(%s, "::after").content`, tile("node-7"))
	await(t, at, "a square has no room for its name", name+` === "none"`)
	filter(t, at, "state:paused")
	shown(t, at, "one is found", "node-7")
	await(t, at, "it has its name", name+` === '"node-7: paused"'`)
	require.NoError(t, at.Press(t.Context(), kb.Escape))
	await(t, at, "all are squares again", fmt.Sprintf(`%s.length === %d && %s === "none"`, shownTiles, many, name))
	bad, right := findings(t, at)
	require.Empty(t, bad)
	require.Greater(t, right, many)
}
