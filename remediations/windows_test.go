package remediations_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
)

func berlin(t testing.TB) *time.Location {
	t.Helper()
	l, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	return l
}

func at2(hour, minute int) WallTime { return WallTime{Hour: hour, Minute: minute} }

func TestWindowContains(t *testing.T) {
	nights := Window{Days: []time.Weekday{time.Monday}, From: at2(22, 0), To: at2(5, 0), Location: berlin(t)}
	day := Window{Days: []time.Weekday{time.Monday, time.Tuesday}, From: at2(9, 30), To: at2(17, 0), Location: berlin(t)}
	always := Window{Location: berlin(t)}
	mondays := Window{Days: []time.Weekday{time.Monday}, Location: berlin(t)}
	early := Window{From: at2(2, 0), To: at2(3, 0), Location: berlin(t)}
	for name, c := range map[string]struct {
		window Window
		at     string
		open   bool
	}{
		"its first minute is in":                          {day, "2026-03-02T09:30:00+01:00", true},
		"the minute before is not":                        {day, "2026-03-02T09:29:59+01:00", false},
		"its last minute is in":                           {day, "2026-03-02T16:59:59+01:00", true},
		"the end is not":                                  {day, "2026-03-02T17:00:00+01:00", false},
		"another day is not":                              {day, "2026-03-04T12:00:00+01:00", false},
		"the place counts, not the zone of the question":  {day, "2026-03-02T08:30:00Z", true},
		"a night begins on its day":                       {nights, "2026-03-02T22:00:00+01:00", true},
		"and goes on after midnight":                      {nights, "2026-03-03T04:59:00+01:00", true},
		"to its end":                                      {nights, "2026-03-03T05:00:00+01:00", false},
		"the morning before is the night of Sunday":       {nights, "2026-03-02T01:00:00+01:00", false},
		"the next evening is Tuesday's":                   {nights, "2026-03-03T22:00:00+01:00", false},
		"no times mean all day":                           {mondays, "2026-03-02T00:00:00+01:00", true},
		"but only on the days":                            {mondays, "2026-03-03T00:00:00+01:00", false},
		"no days and no times mean always":                {always, "2026-03-07T03:00:00+01:00", true},
		"the hour that spring skips is not there: before": {early, "2026-03-29T01:59:59+01:00", false},
		"the hour that spring skips is not there: after":  {early, "2026-03-29T03:00:00+02:00", false},
		"the day before it is":                            {early, "2026-03-28T02:30:00+01:00", true},
		"the hour that autumn repeats is open once":       {early, "2026-10-25T02:30:00+02:00", true},
		"and again":             {early, "2026-10-25T02:30:00+01:00", true},
		"and closed after that": {early, "2026-10-25T03:00:00+01:00", false},
		"a night across the change in spring ends by the clock on the wall": {nights, "2026-03-31T04:59:00+02:00", true},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, c.at)
			require.NoError(t, err)
			require.Equal(t, c.open, c.window.Contains(at))
		})
	}
}

func TestNextOpening(t *testing.T) {
	parse := func(s string) time.Time {
		at, err := time.Parse(time.RFC3339, s)
		require.NoError(t, err)
		return at
	}
	b := berlin(t)
	early := Window{From: at2(2, 0), To: at2(3, 0), Location: b}
	monday := Window{Days: []time.Weekday{time.Monday}, From: at2(22, 0), To: at2(5, 0), Location: b}
	for name, c := range map[string]struct {
		windows  []Window
		at, want string
	}{
		"later today":        {[]Window{early}, "2026-03-02T00:30:20+01:00", "2026-03-02T02:00:00+01:00"},
		"the nearest of two": {[]Window{monday, early}, "2026-03-01T23:00:00+01:00", "2026-03-02T02:00:00+01:00"},
		"next week":          {[]Window{monday}, "2026-03-03T05:00:00+01:00", "2026-03-09T22:00:00+01:00"},
		"the hour that spring skips: the next day's": {[]Window{early}, "2026-03-29T01:00:00+01:00", "2026-03-30T02:00:00+02:00"},
		"the hour that autumn repeats: its second":   {[]Window{early}, "2026-10-25T02:59:30+02:00", "2026-10-25T02:00:00+01:00"},
	} {
		t.Run(name, func(t *testing.T) {
			require.True(t, parse(c.want).Equal(NextOpening(c.windows, parse(c.at))), NextOpening(c.windows, parse(c.at)).String())
		})
	}
}

func TestNextOpeningIsUnknownBeyondEightDays(t *testing.T) {
	skipped := Window{Days: []time.Weekday{time.Sunday}, From: at2(2, 15), To: at2(2, 45), Location: berlin(t)}
	require.Zero(t, NextOpening([]Window{skipped}, time.Date(2026, 3, 22, 3, 0, 0, 0, berlin(t))), "the next Sunday has no such hour")
}

// TestNextOpeningIsTheFirst: a window is open at the time that nextOpening returns, and not before.
func TestNextOpeningIsTheFirst(t *testing.T) {
	b := berlin(t)
	minute := rapid.Custom(func(t *rapid.T) WallTime {
		return at2(rapid.IntRange(0, 23).Draw(t, "hour"), rapid.SampledFrom([]int{0, 15, 30, 59}).Draw(t, "minute"))
	})
	rapid.Check(t, func(t *rapid.T) {
		w := Window{
			Days: rapid.SliceOfN(rapid.Custom(func(t *rapid.T) time.Weekday { return time.Weekday(rapid.IntRange(0, 6).Draw(t, "day")) }), 0, 2).Draw(t, "days"),
			From: minute.Draw(t, "from"), To: minute.Draw(t, "to"), Location: b,
		}
		from := time.Date(2026, time.Month(rapid.SampledFrom([]int{3, 10}).Draw(t, "month")), rapid.IntRange(20, 31).Draw(t, "date"), rapid.IntRange(0, 23).Draw(t, "h"), 7, 30, 0, b)
		next := NextOpening([]Window{w}, from)
		if next.IsZero() { // the only day of its week has no such hour
			next = from.Add(8 * 24 * time.Hour)
		} else {
			require.True(t, w.Contains(next))
		}
		for at := from.Truncate(time.Minute).Add(time.Minute); at.Before(next); at = at.Add(time.Minute) {
			require.False(t, w.Contains(at), at)
		}
	})
}
