package remediations_test

import (
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/testing/scene"
)

func TestWhoseKeyItIs(t *testing.T) {
	for key, want := range map[string]struct{ owned, relevant bool }{
		"alert.drydock.dev/8b2d":     {true, true},
		"repair.drydock.dev/node":    {true, true},
		"repair.drydock.dev/leader":  {true, true},
		"drydock.dev/history":        {true, true},
		"drydock.dev/phase":          {true, true},
		"drydock.dev/pause":          {false, true},
		"drydock.dev/reset":          {false, true},
		"drydock.dev/break-glass":    {false, true},
		"drydock.dev/exclude":        {false, true},
		"drydock.dev/history2":       {false, true},
		"kubernetes.io/hostname":     {false, false},
		"alert.drydock.dev.evil/x":   {false, false},
		"notdrydock.dev/pause":       {false, false},
		"x/alert.drydock.dev/8b2d":   {false, false},
		"":                           {false, false},
		"Repair.drydock.dev/node":    {false, false},
		"sub.repair.drydock.dev/nod": {false, false},
	} {
		require.Equal(t, want.owned, Owned(key), key)
		require.Equal(t, want.relevant, Relevant(key), key)
	}
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.String().Draw(t, "key")
		require.True(t, !Owned(key) || Relevant(key), "what Drydock owns it also reads")
	})
}

func TestExcluded(t *testing.T) {
	n := scene.Bare("n1")
	require.False(t, Excluded(n))
	for _, v := range []string{"", "true", "yes", "False"} {
		n.Labels[ExcludeLabel] = v
		require.True(t, Excluded(n), "%q", v)
	}
	n.Labels[ExcludeLabel] = "false"
	require.False(t, Excluded(n))
}

func TestParsePause(t *testing.T) {
	end := time.Date(2026, 1, 31, 18, 0, 0, 0, time.UTC)
	for text, want := range map[string]Pause{
		"true":                                   {},
		" true ":                                 {},
		"true new disks":                         {Why: "new disks"},
		"true   new disks ":                      {Why: "new disks"},
		"2026-01-31T18:00:00Z":                   {Until: end},
		"2026-01-31T18:00:00Z ticket 1":          {Until: end, Why: "ticket 1"},
		"2026-01-31T20:00:00+02:00 other clocks": {Until: end, Why: "other clocks"},
	} {
		got, err := ParsePause(text)
		require.NoError(t, err, text)
		require.True(t, want.Until.Equal(got.Until), text)
		require.Equal(t, want.Why, got.Why, text)
	}
	for _, text := range []string{"", " ", "yes", "True", "false", "truely", "2h", "2026-01-31", "2026-01-31T18:00:00", "2026-02-31T18:00:00Z", "1769882400", "9999-12-31T23:59:59-14:00", "0000-01-01T00:00:00+14:00"} {
		_, err := ParsePause(text)
		require.ErrorContains(t, err, "write \"true\"", text)
	}
	_, err := ParsePause(strings.Repeat("x", 1<<20))
	require.Less(t, len(err.Error()), 300)
}

func TestParseReset(t *testing.T) {
	require.NoError(t, ParseReset("true"))
	for _, text := range []string{"", "yes", "True", " true"} {
		require.Error(t, ParseReset(text), "%q", text)
	}
}

// TestValidNodeName: ValidNodeName refuses texts that are dangerous in a look-up, a log or a shell.
func TestValidNodeName(t *testing.T) {
	for _, name := range []string{"n1", "ip-10-0-0-1.eu-west-1.compute.internal", "0", strings.Repeat("a", 253)} {
		require.NoError(t, ValidNodeName(name), name)
	}
	for _, name := range []string{"", "N1", "n1;reboot", "$(reboot)", "n1\n", "../n1", "n 1", "n1\x00", "nö", "n_1", "n1:9100", strings.Repeat("a", 254), "\xff"} {
		err := ValidNodeName(name)
		require.Error(t, err, "%q", name)
		require.NotContains(t, err.Error(), "\n")
	}
}

func TestQuantity(t *testing.T) {
	for name, c := range map[string]struct {
		q        Quantity
		total    int
		of       int
		atMost   int // the greatest count that does not exceed
		asString string
	}{
		"a number is itself":                {Quantity{Value: 3}, 10, 3, 3, "3"},
		"a number may exceed the fleet":     {Quantity{Value: 3}, 1, 3, 3, "3"},
		"nothing stays nothing":             {Quantity{}, 10, 0, 0, "0"},
		"a share is rounded down":           {Quantity{Value: 20, Percent: true}, 14, 2, 2, "20%"},
		"but never to nothing":              {Quantity{Value: 20, Percent: true}, 4, 1, 0, "20%"},
		"unless it is nothing":              {Quantity{Percent: true}, 10, 0, 0, "0%"},
		"a share of no nodes is one":        {Quantity{Value: 20, Percent: true}, 0, 1, 0, "20%"},
		"all of them":                       {Quantity{Value: 100, Percent: true}, 7, 7, 7, "100%"},
		"exactly the share does not exceed": {Quantity{Value: 20, Percent: true}, 10, 2, 2, "20%"},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, c.of, c.q.Of(c.total))
			require.False(t, c.q.Exceeded(c.atMost, c.total))
			require.True(t, c.q.Exceeded(c.atMost+1, c.total))
			require.Equal(t, c.asString, c.q.String())
		})
	}
}

// TestClipCutsAtARuneAndLeavesNothingThatATerminalObeys: clip removes control characters, because
// kubectl prints messages to a terminal. It never cuts a character in two.
func TestClipCutsAtARuneAndLeavesNothingThatATerminalObeys(t *testing.T) {
	require.Equal(t, "a [31mb c", Clip("a\x1b[31mb\nc", 80))
	require.Equal(t, "gpj.exe", Clip("\u202egpj.exe", 80), "nor anything that reverses the direction of writing")
	rapid.Check(t, func(t *rapid.T) {
		s, n := rapid.String().Draw(t, "s"), rapid.IntRange(0, 20).Draw(t, "n")
		got := Clip(s, n)
		require.LessOrEqual(t, len(got), n+len("…"))
		require.False(t, strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsGraphic(r) }))
		require.Equal(t, strings.ToValidUTF8(got, ""), got)
	})
}
