package node

import (
	"time"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
)

// Exports that only the tests need.

const (
	AskEvery   = askEvery
	LeaseAgain = leaseAgain
	RefusedFor = refusedFor
	SurveyFor  = surveyFor
	UnaskedFor = unaskedFor
)

var BeforeOf = before

func Follow(s *lifecycle.State, d *lifecycle.Decision, now time.Time) {
	of(s, s.Journal.Record).follow(d, now)
}

func SurveyOf(s *lifecycle.State, c *lifecycle.Candidate) *remediations.Survey {
	return of(s, s.Journal.Record).surveyOf(c)
}

func AloneSince(s *lifecycle.State, c *lifecycle.Candidate) time.Time {
	return of(s, s.Journal.Record).aloneSince(c)
}

func Proven(s *lifecycle.State) (bool, string) { return of(s, s.Journal.Record).proven() }

func Remember(s *lifecycle.State, d *lifecycle.Decision) { of(s, s.Journal.Record).remember(d) }

func RememberEnds(s *lifecycle.State, d *lifecycle.Decision, now time.Time) {
	of(s, s.Journal.Record).rememberEnds(d, now)
}

func PolicyOf(s *lifecycle.State) *remediations.Policy { return of(s, s.Journal.Record).policy() }

func Relapse(s *lifecycle.State, p *remediations.Policy, a *remediations.Alert, now time.Time) *ledger.Cure {
	return of(s, s.Journal.Record).relapse(p, a, now)
}
