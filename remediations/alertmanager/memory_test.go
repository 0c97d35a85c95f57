package alertmanager

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/bounded"
)

// TestAnAnswerTakesNoMoreMemoryThanIsPromised measures, after an answer was read, the memory of the
// answer and its readings. The test is not parallel, because it measures the heap of the whole
// program.
func TestAnAnswerTakesNoMoreMemoryThanIsPromised(t *testing.T) {
	const promised = 64 << 20
	labels := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"%x":""`, i)
		}
		return `{"alertname":"A"` + b.String() + "}"
	}
	alert := func(labels, status string) string {
		return `{"labels":` + labels + `,"startsAt":"2026-11-20T20:55:00Z","status":{"state":"active"` + status + "}}"
	}
	ids := func(n int) string { return "[" + strings.Repeat(`"",`, n-1) + `""]` }
	// distinct returns a function that returns element i of a list of n alerts. The alerts come from
	// one template, and each has a label of its own.
	distinct := func(n int, one string) func(i int) string {
		return func(i int) string {
			if i >= n {
				return ""
			}
			return strings.Replace(one, `"alertname":"A"`, fmt.Sprintf(`"alertname":"A","n":"%d"`, i), 1)
		}
	}
	muted := func(i int, next func(int) string) string {
		one := next(i)
		if one == "" {
			return ""
		}
		return `{"receiver":{"name":"drydock"},"labels":{},"alerts":[` + one + `]}`
	}
	const large = 900 << 10
	for name, c := range map[string]struct {
		next    func(i int) string
		groups  bool
		refused string
		kept    int // if it is not refused
	}{
		"5,000 usual alerts":              {next: distinct(5000, alert(labels(15), "")), kept: 5000},
		"an alert of 500,000 labels":      {next: distinct(1, alert(labels(500_000), "")), refused: "an element of the answer"},
		"an alert of 500,000 silences":    {next: distinct(1, alert(labels(1), `,"silencedBy":`+ids(500_000))), refused: "an element of the answer"},
		"alerts with many labels":         {next: distinct(5000, alert(labels(5000), "")), refused: "alerts of interest take more than"},
		"alerts with many silences":       {next: distinct(5000, alert(labels(1), `,"silencedBy":`+ids(9000))), refused: "alerts of interest take more than"},
		"alerts in a state without end":   {next: distinct(100, strings.Replace(alert(labels(1), ""), "active", strings.Repeat("x", large), 1)), kept: 100},
		"5,000 usual muted alerts":        {next: distinct(5000, alert(labels(15), `,"mutedBy":["nights"]`)), groups: true, kept: 5000},
		"a muted alert of 500,000 labels": {next: distinct(1, alert(labels(500_000), `,"mutedBy":["nights"]`)), groups: true, refused: "an element of the answer"},
		"alerts muted by many":            {next: distinct(5000, alert(labels(1), `,"mutedBy":`+ids(9000))), groups: true, refused: "alerts of interest take more than"},
	} {
		t.Run(name, func(t *testing.T) {
			in := interested(t)
			in.keep, in.receiver = nil, "drydock"
			a, m := newAnswer(in, nil), newMutes(in)
			list, next := &stream{of: "alerts", element: a.read}, c.next
			if c.groups {
				list, next = &stream{of: "groups", element: m.read, depth: 3}, func(i int) string { return muted(i, c.next) }
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			err := list.Consume(&generated{next: next}, nil)
			runtime.GC()
			runtime.ReadMemStats(&after)
			require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(promised))
			if c.refused == "" {
				require.NoError(t, err, "the control")
				if c.groups {
					require.Len(t, m.by, c.kept)
					require.Empty(t, a.alerts)
				} else {
					require.Len(t, a.alerts, c.kept)
					require.Empty(t, m.by)
				}
			} else {
				require.ErrorContains(t, err, c.refused)
				require.ErrorIs(t, err, bounded.ErrTooLarge)
			}
			runtime.KeepAlive(a)
			runtime.KeepAlive(m)
			runtime.KeepAlive(list)
		})
	}
}

// generated is a JSON list whose elements are made while it is read, so that the list itself takes
// no memory.
type generated struct {
	next func(i int) string // empty: there is none left
	i    int
	rest string
	end  bool
}

// Read implements io.Reader.
func (g *generated) Read(p []byte) (int, error) {
	for g.rest == "" {
		if g.end {
			return 0, io.EOF
		}
		begin := ","
		if g.i == 0 {
			begin = "["
		}
		one := g.next(g.i)
		g.i++
		if g.rest = begin + one; one == "" {
			g.rest, g.end = "]", true
		}
	}
	n := copy(p, g.rest)
	g.rest = g.rest[n:]
	return n, nil
}
