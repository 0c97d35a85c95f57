package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Timeline is a drawing with a lane for each object. Each kind of span has its own color, shape and
// word, so that people who do not see colors can read it.
type Timeline struct {
	From, To time.Time
	Lanes    []Lane
	// Empty is the sentence that replaces a timeline without lanes.
	Empty string
}

// Lane is the lane of one node, or of the fleet.
type Lane struct {
	Name  string
	Spans []Span
}

// Span is a period in a lane. Its parts outside the timeline's period are cut off.
type Span struct {
	From, To time.Time
	Mark     Mark
	// Word is the meaning of the mark, for example "Recovered", for the legend.
	Word string
	// Ref refers to a row of a table, for example "3". It may be empty.
	Ref string
	// Title is the complete description in one sentence.
	Title string
	// Ticks are times within the span, for example those of a repair's steps.
	Ticks []time.Time
}

// Mark is how a span looks: its color, the shape at its end and its line.
type Mark string

// These are the marks, in this order of shapes: a filled circle, a ring, a cross, a triangle, a
// filled square, an empty square, a diamond with a broken line, an arrow, a hatched band and a
// plain band.
const (
	MarkGood    Mark = "good"    // repaired
	MarkSelf    Mark = "self"    // recovered by itself
	MarkBad     Mark = "bad"     // not repaired
	MarkAgain   Mark = "again"   // the fault returned
	MarkPerson  Mark = "person"  // a person ended the repair
	MarkOther   Mark = "other"   // ended for another reason
	MarkWould   Mark = "would"   // nothing was done, but a step would have been issued
	MarkOngoing Mark = "ongoing" // still on record
	MarkGap     Mark = "gap"     // no data, or no decisions in that time
	MarkStop    Mark = "stop"    // no repair was allowed to start in that time
)

// Marks has all marks, in the legend's order.
var Marks = []Mark{MarkGood, MarkSelf, MarkBad, MarkAgain, MarkPerson, MarkOther, MarkWould, MarkOngoing, MarkGap, MarkStop}

// Widths are percentages of the timeline's width. The right margin leaves room for the text after
// the last mark.
const (
	leftMargin, rightMargin = 0.8, 5.0
	roomBefore, roomBehind  = 1.0, 3.4
)

type drawn struct {
	Axis   []tick
	Lanes  []drawnLane
	Legend []legend
	Empty  string
}

type tick struct{ At, Label string }

type legend struct {
	Mark Mark
	Word string
}

type drawnLane struct {
	Name, Summary string
	Tracks        int
	Spans         []drawnSpan
}

type drawnSpan struct {
	Mark             Mark
	From, To, Width  string
	Track            int
	Ref, Title, Word string
	Ticks            []string
}

func (t *Timeline) draw() *drawn {
	d := &drawn{Axis: t.axis(), Empty: t.Empty}
	words := map[legend]bool{}
	for _, l := range t.Lanes {
		lane := drawnLane{Name: cell(l.Name), Tracks: 1}
		spans := slices.Clone(l.Spans)
		slices.SortStableFunc(spans, func(a, b Span) int { return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To)) })
		var free []float64 // the end of the last span in each track
		for _, s := range spans {
			words[legend{s.Mark, plain(s.Word)}] = true
			from, to := t.place(s.From), t.place(s.To)
			track := slices.IndexFunc(free, func(x float64) bool { return x <= from-roomBefore })
			if track < 0 {
				track, free = len(free), append(free, 0)
			}
			free[track] = to + roomBehind
			one := drawnSpan{
				Mark: s.Mark, From: percent(from), To: percent(to), Width: percent(to - from), Track: track,
				Ref: plain(s.Ref), Title: plain(s.Title), Word: plain(s.Word),
			}
			for _, at := range s.Ticks {
				one.Ticks = append(one.Ticks, percent(t.place(at)))
			}
			lane.Spans = append(lane.Spans, one)
		}
		lane.Tracks = max(1, len(free))
		d.Lanes = append(d.Lanes, lane)
	}
	for l := range words {
		d.Legend = append(d.Legend, l)
	}
	slices.SortFunc(d.Legend, func(a, b legend) int {
		return cmp.Or(cmp.Compare(slices.Index(Marks, a.Mark), slices.Index(Marks, b.Mark)), cmp.Compare(a.Word, b.Word))
	})
	return d
}

// place returns hundredths of the width.
func (t *Timeline) place(at time.Time) float64 {
	whole := t.To.Sub(t.From)
	if whole <= 0 {
		return leftMargin
	}
	part := min(1, max(0, float64(at.Sub(t.From))/float64(whole)))
	return leftMargin + part*(100-leftMargin-rightMargin)
}

func percent(x float64) string { return fmt.Sprintf("%.3f%%", x) }

const mostTicks = 8

const day = 24 * time.Hour

func (t *Timeline) axis() []tick {
	whole := t.To.Sub(t.From)
	if whole <= 0 {
		return nil
	}
	steps := []time.Duration{
		time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour,
		2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 2 * day, 7 * day, 14 * day, 28 * day, 91 * day,
	}
	step := 364 * day
	if i := slices.IndexFunc(steps, func(s time.Duration) bool { return whole <= mostTicks*s }); i >= 0 {
		step = steps[i]
	}
	format := "15:04"
	switch {
	case step >= 28*day:
		format = "2006-01-02"
	case step >= day:
		format = "Jan 2"
	case whole > day:
		format = "Jan 2 15:04"
	case step < time.Minute:
		format = "15:04:05"
	}
	var out []tick
	for at := t.From.UTC().Truncate(step); !at.After(t.To); at = at.Add(step) {
		if !at.Before(t.From) {
			out = append(out, tick{percent(t.place(at)), at.Format(format)})
		}
	}
	return out
}
