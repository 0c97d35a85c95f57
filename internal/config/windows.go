package config

import (
	"fmt"
	"time"
	_ "time/tzdata" // time zones, for machines and images that have no database of them

	"drydock.dev/drydock/remediations"
)

var weekdays = map[string]time.Weekday{
	"Sun": time.Sunday, "Mon": time.Monday, "Tue": time.Tuesday, "Wed": time.Wednesday,
	"Thu": time.Thursday, "Fri": time.Friday, "Sat": time.Saturday,
}

func (b *builder) buildWindows(raw *rawConfig) {
	for i, w := range raw.Windows {
		at := pointer{"windows"}.To(i)
		window := remediations.Window{
			From:     b.wallTime(at.To("from"), w.From),
			To:       b.wallTime(at.To("to"), w.To),
			Location: b.location(at.To("timezone"), w.Timezone),
		}
		if w.From == w.To {
			b.Fault(at.To("to"), "%q is the same as from; write another time, or 00:00 to 24:00 for the whole day", w.To)
		}
		for _, day := range w.Days {
			if d, ok := weekdays[day]; ok {
				window.Days = append(window.Days, d)
			}
		}
		b.core.Windows = append(b.core.Windows, window)
	}
}

// wallTime relies on the schema, which has checked the format.
func (b *builder) wallTime(p pointer, text string) remediations.WallTime {
	var t remediations.WallTime
	if _, err := fmt.Sscanf(text, "%02d:%02d", &t.Hour, &t.Minute); err != nil {
		b.Fault(p, "%s is not a time of day; write for example 22:00", show(text))
	}
	return t
}

// location refuses "Local", which means another zone on each machine.
func (b *builder) location(p pointer, name string) *time.Location {
	l, err := time.LoadLocation(name)
	if err != nil || name == "Local" || name == "" {
		b.Fault(p, "%s is not a time zone of the IANA database; write for example Europe/Berlin", show(name))
		return time.UTC
	}
	return l
}
