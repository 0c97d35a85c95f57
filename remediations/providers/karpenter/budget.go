package karpenter

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// budget is one of a NodePool's disruption budgets.
type budget struct {
	Nodes    string   `json:"nodes"`
	Reasons  []string `json:"reasons"`
	Schedule string   `json:"schedule"`
	Duration string   `json:"duration"`
}

func (b budget) String() string {
	said := b.Nodes
	if len(b.Reasons) > 0 {
		said += " for " + strings.Join(b.Reasons, ", ")
	}
	if b.Schedule != "" {
		said += fmt.Sprintf(" from %q for %s", b.Schedule, b.Duration)
	}
	return said
}

// maxBudget bounds the minutes that are looked through for when a budget began.
const maxBudget = 366 * 24 * time.Hour

// forbids says that the budget allows no disruption now, whatever its reasons. One with a schedule is active for its duration from
// each minute of the schedule on, in UTC.
func (b budget) forbids(now time.Time) (bool, error) {
	if n := strings.TrimSuffix(b.Nodes, "%"); n != "0" && n != "00" {
		return false, nil
	}
	if b.Schedule == "" {
		return true, nil
	}
	when, err := parseSchedule(b.Schedule)
	if err != nil {
		return false, err
	}
	duration, err := time.ParseDuration(b.Duration)
	if err != nil || duration < 0 {
		return false, fmt.Errorf("the duration %q cannot be read", b.Duration)
	}
	now = now.UTC()
	for at, since := now.Truncate(time.Minute), now.Add(-min(duration, maxBudget)); at.After(since); at = at.Add(-time.Minute) {
		if when.has(at) {
			return true, nil
		}
	}
	return false, nil
}

// schedule is a line of cron's, as sets of bits.
type schedule struct {
	minutes, hours, days, months, weekdays uint64
	anyDay, anyWeekday                     bool
}

var shortSchedules = map[string]string{
	"@annually": "0 0 1 1 *", "@yearly": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

var names = strings.NewReplacer(
	"jan", "1", "feb", "2", "mar", "3", "apr", "4", "may", "5", "jun", "6", "jul", "7", "aug", "8", "sep", "9", "oct", "10", "nov", "11", "dec", "12",
	"sun", "0", "mon", "1", "tue", "2", "wed", "3", "thu", "4", "fri", "5", "sat", "6",
)

func parseSchedule(text string) (s schedule, err error) {
	if short, ok := shortSchedules[text]; ok {
		text = short
	}
	fields := strings.Fields(names.Replace(strings.ToLower(text)))
	if len(fields) != 5 {
		return s, fmt.Errorf("the schedule %q has %d fields, not 5", text, len(fields))
	}
	for i, of := range []struct {
		into     *uint64
		from, to int
	}{{&s.minutes, 0, 59}, {&s.hours, 0, 23}, {&s.days, 1, 31}, {&s.months, 1, 12}, {&s.weekdays, 0, 6}} {
		if *of.into, err = parseField(fields[i], of.from, of.to); err != nil {
			return s, fmt.Errorf("the schedule %q: %w", text, err)
		}
	}
	star := func(f string) bool { return strings.HasPrefix(f, "*") || strings.HasPrefix(f, "?") }
	s.anyDay, s.anyWeekday = star(fields[2]), star(fields[4])
	return s, nil
}

// parseField reads a list of values, ranges and steps.
func parseField(field string, from, to int) (bits uint64, err error) {
	for part := range strings.SplitSeq(field, ",") {
		span, every, stepped := strings.Cut(part, "/")
		step := 1
		if stepped {
			if step, err = strconv.Atoi(every); err != nil || step < 1 {
				return 0, fmt.Errorf("the step of %q is no number", part)
			}
		}
		first, last := from, to
		if span != "*" && span != "?" {
			low, high, ranged := strings.Cut(span, "-")
			if first, err = strconv.Atoi(low); err != nil {
				return 0, fmt.Errorf("%q is no number", part)
			}
			switch {
			case ranged:
				if last, err = strconv.Atoi(high); err != nil {
					return 0, fmt.Errorf("%q is no range", part)
				}
			case !stepped:
				last = first
			}
		}
		if first < from || last > to || first > last {
			return 0, fmt.Errorf("%q is not from %d to %d", part, from, to)
		}
		for at := first; at <= last; at += step {
			bits |= 1 << at
		}
	}
	return bits, nil
}

// has says that the schedule names that minute. Where it limits both the day of the month and that of the week, either is enough.
func (s schedule) has(t time.Time) bool {
	in := func(bits uint64, n int) bool { return bits&(1<<n) != 0 }
	day, weekday := in(s.days, t.Day()), in(s.weekdays, int(t.Weekday()))
	onDay := day || weekday
	if s.anyDay || s.anyWeekday {
		onDay = day && weekday
	}
	return in(s.minutes, t.Minute()) && in(s.hours, t.Hour()) && in(s.months, int(t.Month())) && onDay
}
