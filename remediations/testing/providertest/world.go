package providertest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/signs"
)

const (
	// For a call that meets no fault.
	patience = 2 * time.Minute
	// In bytes, of one text that the provider returns for people.
	longest = 1024
)

// The longest time that a call may take to end after its context has ended. It is less than
// patience, and long enough for a busy test machine. Only this package's own tests change it.
var soon = time.Minute

// scene is a World while a case runs.
type scene struct {
	World
	t     testing.TB
	p     Provider
	texts []any
	// The backend is closed while a request still waits for its answer.
	abandoned bool
	// The number of requests that had arrived when actWith called Act.
	asked int
}

// The function in runs the case what in a World. Then no text of the provider may show a secret, no
// redirect may have been followed, and no goroutine may be left.
func in(t testing.TB, p Provider, timeout time.Duration, what func(s *scene)) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	s := &scene{World: p.Start(t, timeout), t: t, p: p}
	closed := false
	defer func() {
		if !closed { // the case has failed before it closed the world
			s.Close()
		}
	}()
	what(s)
	s.requireQuiet()
	require.Zero(t, s.Wire.Strays(), "the provider followed a redirect")
	require.False(t, s.Wire.Overread(), "the provider reads an endless answer without a limit")
	deadline := time.Now().Add(soon)
	if p.Outlives {
		deadline = deadline.Add(timeout)
	}
	require.Eventually(t, func() bool { return s.abandoned || s.Wire.Busy() == 0 }, time.Until(deadline), time.Millisecond, "the provider still waits for an answer long after its call has returned")
	closed = true
	s.Close()
	err := goleak.Find(before)
	for err != nil && time.Now().Before(deadline) {
		err = goleak.Find(before)
	}
	require.NoError(t, err, "goroutines are left")
}

// The provider gets a short time limit. On a busy test machine, that may end an earlier request
// than the one that the case is about. The function what then returns false, and runs again with a
// longer limit.
func reaching(t testing.TB, p Provider, what func(s *scene, limit time.Duration) bool) {
	t.Helper()
	for limit, reached := 250*time.Millisecond, false; !reached; limit *= 3 {
		require.Less(t, limit, 5*time.Minute, "the request that should meet the fault was never sent")
		in(t, p, limit, func(s *scene) { reached = what(s, limit) })
	}
}

// asked is true if Act called mayStill.
type outcome struct {
	outcome remediations.CallOutcome
	err     error
	asked   bool
}

func (o outcome) account() bool { return errors.Is(o.err, engine.ErrAccount) }

func yes() error { return nil }

func (s *scene) act(ctx context.Context, m engine.Machine, mayStill func() error) outcome {
	s.t.Helper()
	asked := false
	got, err := s.Actuator.Act(ctx, m, func() error {
		asked = true
		return mayStill()
	})
	s.texts = append(s.texts, err)
	require.Contains(s.t, []remediations.CallOutcome{remediations.CallAccepted, remediations.CallRefused, remediations.CallUnknown}, got, "%v", err)
	require.Equal(s.t, got == remediations.CallAccepted, err == nil, "an outcome %q with the error %v", got, err)
	if err != nil {
		require.ErrorContains(s.t, err, m.Node, "the error does not name the node")
	}
	return outcome{got, err, asked}
}

// The machine as the engine passes it to Act, with the result of Survey.
func (s *scene) ready() engine.Machine {
	s.t.Helper()
	m, trouble := s.surveyed()
	require.Empty(s.t, trouble, "a machine that is well")
	return m
}

func (s *scene) surveyed() (m engine.Machine, trouble string) {
	m = s.Machine
	if surveyor, ok := s.Actuator.(engine.Surveyor); ok {
		said := surveyor.Survey(s.t.Context(), m)
		s.texts = append(s.texts, said.Trouble, said.Evidence)
		m.Before, trouble = said.Before, said.Trouble
	}
	return m, trouble
}

func (s *scene) survey(ctx context.Context, m engine.Machine) remediations.Survey {
	s.t.Helper()
	surveyor, ok := s.Actuator.(engine.Surveyor)
	require.True(s.t, ok, "the provider is not an engine.Surveyor; give the reason in DoesNotApply")
	said := surveyor.Survey(ctx, m)
	s.texts = append(s.texts, said.Trouble, said.Evidence)
	return said
}

// testify asks the provider, which must be an engine.Witness, whether the machine runs.
func (s *scene) testify(ctx context.Context, m engine.Machine) signs.Testimony {
	s.t.Helper()
	witness, ok := s.Actuator.(engine.Witness)
	require.True(s.t, ok, "the provider is not an engine.Witness; give the reason in DoesNotApply")
	said := witness.Testify(ctx, m, signs.Sign{Kind: signs.NotRunning})
	s.texts = append(s.texts, said.Saw)
	return said
}

func (s *scene) changes() (out []Request) {
	for _, r := range s.Wire.Requests() {
		if r.Changes {
			out = append(out, r)
		}
	}
	return out
}

// No change may have been requested or made.
func (s *scene) requireNothing() {
	s.t.Helper()
	require.Empty(s.t, s.changes(), "the provider asked for a change")
	require.Empty(s.t, s.Changed())
}

// requireTrue asserts that the outcome matches what the backend really did, with at most one
// request for a change, and only for the right machine.
func (s *scene) requireTrue(o outcome) {
	s.t.Helper()
	require.LessOrEqual(s.t, len(s.changes()), 1, "more than one request that changes something: %v", s.Wire.Requests())
	changed := s.Changed()
	for _, id := range changed {
		require.Equal(s.t, s.ID, id, "another machine was changed")
	}
	switch o.outcome {
	case remediations.CallAccepted:
		require.Len(s.t, changed, 1, "Act returned accepted, and nothing was done")
	case remediations.CallRefused:
		require.Empty(s.t, changed, "Act returned refused, and the work was done: %v", o.err)
	default: // unknown claims nothing
	}
}

// No text that the provider returned or logged may show a secret. A returned text must also have
// one line, no control characters, and at most as many bytes as longest.
func (s *scene) requireQuiet() {
	s.t.Helper()
	texts := s.texts
	for _, text := range texts {
		line := fmt.Sprint(text)
		require.LessOrEqual(s.t, len(line), longest, "a text that is too long")
		require.NotContains(s.t, strings.ToValidUTF8(line, "\n"), "\n", "a text of more than one line")
		require.False(s.t, strings.ContainsFunc(line, unicode.IsControl), "a text with control characters: %q", line)
	}
	if s.Log != nil {
		texts = append(texts, s.Log())
	}
	said := everyText(texts)
	for i, secret := range s.Secrets {
		require.GreaterOrEqual(s.t, len(secret), 16, "secret %d is too short to be looked for", i)
		for _, form := range spellings(secret) {
			if strings.Contains(said, form) { // FailNow, because a failure of Contains would print the secret
				require.FailNow(s.t, fmt.Sprintf("secret %d, or its beginning, is in a text of the provider", i))
			}
		}
	}
}

func everyText(values []any) string {
	var all strings.Builder
	for _, v := range values {
		fmt.Fprintf(&all, "%v %+v %#v\n", v, v, v)
		err, _ := v.(error)
		for ; err != nil; err = errors.Unwrap(err) {
			fmt.Fprintf(&all, "%v %+v %#v\n", err, err, err)
		}
	}
	return all.String()
}

// The forms that the secret may have in a text: plain, escaped, and its first half, which remains
// if a text was cut.
func spellings(secret string) []string {
	inJSON, _ := json.Marshal(secret) // a string never fails
	quoted := strconv.Quote(secret)
	forms := []string{
		string(inJSON[1 : len(inJSON)-1]), quoted[1 : len(quoted)-1], html.EscapeString(secret), url.QueryEscape(secret),
		url.PathEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)),
	}
	return append(forms, secret, secret[:len(secret)/2])
}

// tattle puts the secrets into the fault's text. salt changes their position, so a provider that
// cuts texts sometimes cuts a secret in the middle.
func (s *scene) tattle(f Fault, salt int) Fault {
	f.Text = strings.Join(s.Secrets, " ") + strings.Repeat("x", salt*37%300) + strings.Join(s.Secrets, " ") + "\x1b[2J\n\u202e" + strings.Repeat("y", longest)
	return f
}
