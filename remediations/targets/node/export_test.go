package node

import (
	"time"

	"drydock.dev/drydock/remediations"
)

// What the tests of this package ask that nobody else does.

const (
	AskEvery   = askEvery
	LeaseAgain = leaseAgain
	RefusedFor = refusedFor
	SurveyFor  = surveyFor
)

var BeforeOf = before

func Follow(s *remediations.State, d *remediations.Decision, now time.Time) { of(s).follow(d, now) }

func SurveyOf(s *remediations.State, c *remediations.Candidate) *remediations.Survey {
	return of(s).surveyOf(c)
}

func Proven(s *remediations.State) (bool, string) { return of(s).proven() }

func Remember(s *remediations.State, d *remediations.Decision) { of(s).remember(d) }

func PolicyOf(s *remediations.State) *remediations.Policy { return of(s).policy() }
