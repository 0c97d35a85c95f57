package remediations

import (
	"slices"
	"time"
)

// Window is a weekly time in which disruptive repairs may begin. From after To means that it crosses midnight and
// belongs to the day on which it begins.
type Window struct {
	// Days on which it begins; none means every day.
	Days []time.Weekday
	// From and To are times of day on the wall clock of Location, to the minute; To is not part of the window.
	From, To WallTime
	Location *time.Location
}

// WallTime is a time of day as a clock on the wall shows it.
type WallTime struct{ Hour, Minute int }

func (w WallTime) minutes() int { return w.Hour*60 + w.Minute }

// Contains says whether the window is open at t. It compares what the wall clock shows, so an hour that daylight
// saving skips is not there, and an hour that it repeats is open twice.
func (w Window) Contains(t time.Time) bool {
	local := t.In(w.Location)
	at, from, to := local.Hour()*60+local.Minute(), w.From.minutes(), w.To.minutes()
	today := local.Weekday()
	yesterday := (today + 6) % 7
	switch {
	case from == to:
		return w.on(today)
	case from < to:
		return w.on(today) && at >= from && at < to
	default:
		return (w.on(today) && at >= from) || (w.on(yesterday) && at < to)
	}
}

func (w Window) on(d time.Weekday) bool { return len(w.Days) == 0 || slices.Contains(w.Days, d) }

// nextOpening returns when one of the windows opens next after t, to the minute; zero if none does within eight days.
func nextOpening(windows []Window, t time.Time) time.Time {
	const step = time.Minute
	for at := t.Truncate(step).Add(step); at.Before(t.Add(8 * 24 * time.Hour)); at = at.Add(step) {
		for _, w := range windows {
			if w.Contains(at) {
				return at
			}
		}
	}
	return time.Time{}
}

// InWindow says whether disruptive repairs may begin now, and when they may if not.
func (c *Config) InWindow(now time.Time) (open bool, next time.Time) {
	if len(c.Windows) == 0 || slices.ContainsFunc(c.Windows, func(w Window) bool { return w.Contains(now) }) {
		return true, time.Time{}
	}
	return false, nextOpening(c.Windows, now)
}
