package alertmanager

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/go-openapi/strfmt"
	"github.com/prometheus/alertmanager/api/v2/models"
	"github.com/prometheus/common/model"
)

// answer collects what is of interest while a replica's list of alerts streams
// in, so that an answer is never held whole. It is a runtime.Consumer: the
// generated client hands it the body in place of its own JSON reader, which
// would take an empty body for "no alerts" and ignore what follows the list.
type answer struct {
	interests interests

	watchdog   bool
	watchdogAt time.Time
	blindBy    map[string]bool
	alerts     map[string]Alert
	complete   bool // the list was read to its end, and nothing follows it
}

func newAnswer(in interests) *answer {
	return &answer{interests: in, blindBy: map[string]bool{}, alerts: map[string]Alert{}}
}

// Consume reads the whole list. The second argument, the client's own payload,
// is left empty. No error is io.EOF, which the generated client would ignore.
func (a *answer) Consume(body io.Reader, _ any) error {
	d := json.NewDecoder(body)
	first, err := d.Token()
	if errors.Is(err, io.EOF) {
		return errors.New("the answer is empty")
	}
	if err != nil {
		return notAlerts(err)
	}
	if first != json.Delim('[') {
		return errors.New("the answer is JSON, but not a list of alerts")
	}
	for d.More() {
		var alert *models.GettableAlert
		if err := d.Decode(&alert); err != nil {
			return notAlerts(err)
		}
		if err := a.add(alert); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return notAlerts(err)
	}
	switch _, err := d.Token(); {
	case errors.Is(err, io.EOF):
		a.complete = true
		return nil
	case err != nil:
		return notAlerts(err)
	default:
		return errors.New("the answer goes on after the list of alerts")
	}
}

// notAlerts wraps an error of the decoder, and hides an io.EOF in it.
func notAlerts(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("reading the answer as a list of alerts: %w", err)
}

// add looks at one alert and keeps it if it is of interest. An alert without
// labels, state or begin was not written by an Alertmanager, so nothing else in
// the answer can be trusted either.
func (a *answer) add(m *models.GettableAlert) error {
	if m == nil || len(m.Labels) == 0 || m.StartsAt == nil || m.Status == nil || m.Status.State == nil || *m.Status.State == "" {
		return errors.New("the answer has an alert without labels, state or startsAt, so it is not Alertmanager's")
	}
	set := labelSet(m.Labels)
	state := *m.Status.State
	if a.interests.watchdog != nil && a.interests.watchdog.Matches(set) {
		a.watchdog = true
		if at := timeOf(m.UpdatedAt); at.After(a.watchdogAt) {
			a.watchdogAt = at
		}
	}
	if state == StateActive && len(a.blindBy) < maxBlindBy && a.interests.blinds(set) {
		a.blindBy[nameOf(set)] = true
	}
	if a.interests.keep != nil && !a.interests.keep(m.Labels) {
		return nil
	}
	key := set.Fingerprint().String()
	if _, twice := a.alerts[key]; twice {
		return fmt.Errorf("the answer has the alert %s twice, so it is not Alertmanager's", nameOf(set))
	}
	if len(a.alerts) == maxAlerts {
		return fmt.Errorf("the answer has more than %d alerts of interest", maxAlerts)
	}
	a.alerts[key] = Alert{
		Labels:      m.Labels,
		StartsAt:    timeOf(m.StartsAt),
		EndsAt:      timeOf(m.EndsAt),
		UpdatedAt:   timeOf(m.UpdatedAt),
		State:       state,
		SilencedBy:  m.Status.SilencedBy,
		InhibitedBy: m.Status.InhibitedBy,
		MutedBy:     m.Status.MutedBy,
	}
	return nil
}

// names are the alerts that blind, sorted.
func (a *answer) names() []string {
	if len(a.blindBy) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(a.blindBy))
}

// nameOf is how people know the alert, cut to what fits in a sentence.
func nameOf(set model.LabelSet) string {
	const longest = 128
	name := string(set[model.AlertNameLabel])
	if name == "" || len(name) > longest {
		return set.Fingerprint().String()
	}
	return name
}

func timeOf(t *strfmt.DateTime) time.Time {
	if t == nil {
		return time.Time{}
	}
	return time.Time(*t).UTC()
}
