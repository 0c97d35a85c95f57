package hosts

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"

	"drydock.dev/drydock/remediations"
)

// patience is the time limit in tests that wait for one: enough for the steps before, on a busy
// machine.
const patience = 8 * time.Second

// restarted requests a restart with patience, and with a longer limit if a busy machine used the
// time up before the command was sent.
func (s *site) restarted(t *testing.T, mayStill func() error) (remediations.CallOutcome, error) {
	t.Helper()
	for s.options.Timeout = patience; ; s.options.Timeout *= 3 {
		s.setWrong(func() { s.hangs, s.cuts = nowhereAt, nowhereAt }) // undo the effect of mayStill
		outcome, err := s.client(t).Restart(t.Context(), s.host, "kubelet.service", "a-1-1", mayStill)
		if outcome != remediations.CallRefused || s.sentRestarts() > 0 || s.options.Timeout > time.Minute {
			return outcome, err
		}
	}
}

func TestARestartIsAcceptedWhenTheUnitIsAnotherInvocation(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	outcome, err := s.client(t).Restart(t.Context(), s.host, "kubelet.service", "n7q4k2-1-1", may)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.Equal(t, []string{"n7q4k2-1-1"}, s.attempts())
	require.EqualValues(t, 1, s.accepted.Load(), "one connection a host")
}

func TestASecondRestartIsRefusedBySystemdWhileTheFirstIsThere(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.client(t)
	_, err := c.Restart(t.Context(), s.host, "kubelet.service", "first-1-1", may)
	require.NoError(t, err)
	outcome, err := c.Restart(t.Context(), s.host, "kubelet.service", "second-1-1", may)
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorIs(t, err, ErrBusy)
	var busy *busyError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, "first-1-1", busy.Attempt)
	require.Equal(t, []string{"first-1-1"}, s.attempts())
	require.Equal(t, 1, s.sentRestarts(), "what can be seen beforehand is not sent")
}

// Another Drydock acts between this one's look and its command.
func TestTheRaceForAUnitIsSystemdsToDecide(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	outcome, err := s.client(t).Restart(t.Context(), s.host, "kubelet.service", "second-1-1", func() error {
		s.set(func() { s.restarting = "first-1-1" })
		return nil
	})
	require.Equal(t, remediations.CallRefused, outcome)
	var busy *busyError
	require.ErrorAs(t, err, &busy)
	require.Equal(t, "first-1-1", busy.Attempt)
	require.Empty(t, s.attempts())
}

func TestAnAttemptIsSentOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	c := s.client(t)
	_, err := c.Restart(t.Context(), s.host, "kubelet.service", "a-1-1", may)
	require.NoError(t, err)
	outcome, err := c.Restart(t.Context(), s.host, "kubelet.service", "a-1-1", may)
	require.Equal(t, remediations.CallUnknown, outcome, "who asks again does not know what came of it, and it was done")
	require.ErrorContains(t, err, "this attempt was already sent")
	require.Equal(t, 1, s.sentRestarts())
}

func TestTheLastCheckIsRightBeforeTheCommand(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	no := errors.New("the intent is too old")
	asked := 0
	outcome, err := s.client(t).Restart(t.Context(), s.host, "kubelet.service", "a-1-1", func() error {
		asked++
		require.EqualValues(t, 1, s.accepted.Load(), "everything that takes time was done before")
		require.Len(t, s.received(), 1, "the look")
		return no
	})
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorIs(t, err, no)
	require.Equal(t, 1, asked)
	require.Zero(t, s.sentRestarts())
}

func TestAUnitThatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	for _, load := range []string{"not-found", "masked", "error", "bad-setting"} {
		s := newSite(t)
		s.set(func() { s.load = load })
		c := s.client(t)
		_, err := c.Status(t.Context(), s.host, "kubelet.service")
		require.ErrorIs(t, err, ErrNoUnit)
		require.ErrorContains(t, err, load)
		outcome, err := c.Restart(t.Context(), s.host, "kubelet.service", "a-1-1", may)
		require.Equal(t, remediations.CallRefused, outcome)
		require.ErrorIs(t, err, ErrNoUnit)
		require.Zero(t, s.sentRestarts())
	}
}

func TestARestartThatSystemdTookAndThatDoesNotHappenIsUnknown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.set(func() { s.stuck = true })
	outcome, err := s.restarted(t, may)
	require.Equal(t, remediations.CallUnknown, outcome)
	require.ErrorContains(t, err, "systemd accepted the command, but the unit did not restart")
	require.Equal(t, 1, s.sentRestarts())
}

// A unit that is gone has no invocation, which does not count as a new one.
func TestAUnitWithoutAnInvocationWasNotRestarted(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.set(func() { s.stuck = true })
	outcome, err := s.restarted(t, func() error {
		s.set(func() { s.invocation = -1 })
		return nil
	})
	require.Equal(t, remediations.CallUnknown, outcome)
	require.Error(t, err)
}

func TestAnSSHDThatExecutesNothingIsDenied(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	outcome, err := s.client(t).Restart(t.Context(), s.host, "kubelet.service", "a-1-1", func() error {
		s.setWrong(func() { s.refuses = true })
		return nil
	})
	require.Equal(t, remediations.CallRefused, outcome)
	require.ErrorIs(t, err, errDenied)
	require.Empty(t, s.attempts())
}

func TestWhatAHostSaysNoToIsRefusedAndSaid(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		stderr string
		code   int
		kind   error
		says   string
	}{
		{"sudo: a password is required", 1, errDenied, "check its sudoers"},
		{"Failed to start transient service unit: Interactive authentication required.", 1, errDenied, "check its sudoers"},
		{"Failed to start transient service unit: Access denied", 1, errDenied, "check its sudoers"},
		{"drydock-host: refused: this unit is not one of: kubelet.service", 77, errDenied, "compare the units"},
		{"sh: 1: sudo: not found", 127, nil, "not found"},
		{"bash: /usr/bin/systemd-run: Permission denied", 126, nil, "exit code 126"},
		{"Failed to connect to bus: No such file or directory", 1, nil, "Failed to connect to bus"},
	} {
		s := newSite(t)
		s.answers = func(line string, ch ssh.Channel) (int, bool) {
			if restartLine.MatchString(line) {
				_, _ = ch.Stderr().Write([]byte(c.stderr))
				return c.code, true
			}
			stdout, _, code := s.execute(line)
			_, _ = ch.Write([]byte(stdout))
			return code, true
		}
		outcome, err := s.client(t).Restart(t.Context(), s.host, "kubelet.service", "a-1-1", may)
		require.Equal(t, remediations.CallRefused, outcome, c.stderr)
		require.ErrorContains(t, err, "nothing was done")
		require.ErrorContains(t, err, c.says)
		if c.kind != nil {
			require.ErrorIs(t, err, c.kind)
		}
		require.Equal(t, 1, s.sentRestarts())
	}
}

// The error of systemd-run may come too late to prove that systemd did nothing.
func TestAFailureThatProvesNothingIsUnknown(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.answers = func(line string, ch ssh.Channel) (int, bool) {
		if restartLine.MatchString(line) {
			_, _ = ch.Stderr().Write([]byte("Failed to start transient service unit: Connection timed out"))
			return 1, true
		}
		stdout, _, code := s.execute(line)
		_, _ = ch.Write([]byte(stdout))
		s.set(func() { s.invocation++ }) // a kubelet that dies by itself all the time
		return code, true
	}
	outcome, err := s.restarted(t, may)
	require.Equal(t, remediations.CallUnknown, outcome)
	require.ErrorContains(t, err, "it is unknown whether systemd accepted it")
}

// The command is executed, and its answer is lost: the state of the host decides.
func TestACutAfterTheCommandIsSettledByWhatTheHostShows(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.answers = func(line string, ch ssh.Channel) (int, bool) {
		stdout, _, code := s.execute(line)
		if restartLine.MatchString(line) {
			s.cutAll()
			return 0, false
		}
		_, _ = ch.Write([]byte(stdout))
		return code, true
	}
	outcome, err := s.client(t).Restart(t.Context(), s.host, "kubelet.service", "a-1-1", may)
	require.NoError(t, err)
	require.Equal(t, remediations.CallAccepted, outcome)
	require.Equal(t, []string{"a-1-1"}, s.attempts())
	require.EqualValues(t, 2, s.accepted.Load())
}

// Half an answer does not count: the text before the cut may not be all of it.
func TestAComplaintWithoutAnExitCodeProvesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.answers = func(line string, ch ssh.Channel) (int, bool) {
		if restartLine.MatchString(line) {
			_, _ = ch.Stderr().Write([]byte("Failed to connect to bus: No such file or directory"))
			_ = ch.Close()
			return 0, false
		}
		stdout, _, code := s.execute(line)
		_, _ = ch.Write([]byte(stdout))
		return code, true
	}
	outcome, err := s.restarted(t, may)
	require.Equal(t, remediations.CallUnknown, outcome)
	require.ErrorContains(t, err, "it is unknown whether systemd accepted it")
}

// A kubelet that dies all the time has another invocation at each look, and none from this attempt.
func TestAnInvocationThatIsNotOursProvesNothing(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.answers = func(line string, ch ssh.Channel) (int, bool) {
		if restartLine.MatchString(line) {
			s.cutAll()
			return 0, false
		}
		stdout, _, code := s.execute(line)
		_, _ = ch.Write([]byte(stdout))
		s.set(func() { s.invocation++ })
		return code, true
	}
	outcome, err := s.restarted(t, may)
	require.Equal(t, remediations.CallUnknown, outcome)
	require.ErrorContains(t, err, "it is unknown whether systemd accepted it")
	require.ErrorIs(t, err, ErrUnreachable)
}

func TestACutBeforeTheCommandIsRefusedAndOneAfterItUnknown(t *testing.T) {
	t.Parallel()
	for at, want := range map[stage]remediations.CallOutcome{atRequest: remediations.CallUnknown, atCommand: remediations.CallUnknown} {
		s := newSite(t)
		outcome, err := s.restarted(t, func() error {
			s.setWrong(func() { s.cuts, s.cutsLeft = at, 1 })
			s.set(func() { s.stuck = true })
			return nil
		})
		require.Equal(t, want, outcome, "%s: %v", at, err)
		require.ErrorContains(t, err, "the restart may have been done")
		require.Equal(t, 1, s.sentRestarts(), "and never sent twice")
	}
	for _, at := range []stage{atBanner, atKeys, atAuth, atSession} {
		s := newSite(t)
		s.options.Timeout = patience
		s.setWrong(func() { s.cuts, s.cutsLeft = at, 100 })
		outcome, err := s.client(t).Restart(t.Context(), s.host, "kubelet.service", "a-1-1", may)
		require.Equal(t, remediations.CallRefused, outcome, "%s: %v", at, err)
		require.ErrorIs(t, err, ErrUnreachable, at)
		require.Zero(t, s.sentRestarts())
	}
	s := newSite(t)
	outcome, err := s.client(t).Restart(t.Context(), s.host, "kubelet.service", "a-1-1", func() error {
		s.cutAll()
		return errors.New("and no")
	})
	require.Equal(t, remediations.CallRefused, outcome)
	require.Error(t, err)
	require.Zero(t, s.sentRestarts())
}

// A context or a time limit ends a hang at any stage, and the connection with it.
func TestAHangEndsWithTheTimeAtEveryStage(t *testing.T) {
	t.Parallel()
	for _, at := range []stage{atBanner, atKeys, atAuth, atSession, atRequest, atCommand} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			s.options.Timeout = patience
			c := s.client(t)
			s.setWrong(func() { s.hangs = at })
			_, err := c.Status(t.Context(), s.host, "kubelet.service")
			require.ErrorIs(t, err, ErrUnreachable)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.Eventually(t, func() bool { return s.closed.Load() == s.accepted.Load() || at == atAuth }, time.Minute, time.Millisecond, "nothing is left behind")
			require.Empty(t, c.lines, "nothing is kept of it")

			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(100*time.Millisecond, cancel)
			patient := s.options
			patient.Timeout = time.Hour
			p, err := New(patient)
			require.NoError(t, err)
			outcome, err := p.Restart(ctx, s.host, "kubelet.service", "a-1-1", may)
			require.Equal(t, remediations.CallRefused, outcome, "the look hung, so nothing was sent")
			require.ErrorIs(t, err, context.Canceled)
			require.Zero(t, s.sentRestarts())
		})
	}
}

func TestAHangAfterTheCommandWasSentIsUnknown(t *testing.T) {
	t.Parallel()
	for _, at := range []stage{atRequest, atCommand} {
		t.Run(string(at), func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			outcome, err := s.restarted(t, func() error {
				s.setWrong(func() { s.hangs = at })
				return nil
			})
			require.Equal(t, remediations.CallUnknown, outcome, "%v", err)
			require.Equal(t, 1, s.sentRestarts())
		})
	}
}

func TestEndlessOutputIsCutOff(t *testing.T) {
	t.Parallel()
	for _, stderr := range []bool{false, true} {
		s := newSite(t)
		s.options.Timeout = 10 * time.Minute
		s.answers = func(_ string, ch ssh.Channel) (int, bool) {
			to := ssh.Channel(ch)
			for {
				var err error
				if stderr {
					_, err = to.Stderr().Write([]byte(strings.Repeat("y\n", 10_000)))
				} else {
					_, err = to.Write([]byte(strings.Repeat("y\n", 10_000)))
				}
				if err != nil {
					return 0, false
				}
			}
		}
		began := time.Now()
		_, err := s.client(t).Evidence(t.Context(), s.host, "kubelet.service")
		require.ErrorContains(t, err, "printed more than")
		require.Less(t, time.Since(began), s.options.Timeout/2, "it does not take the time limit to see that")
		require.Eventually(t, func() bool { return s.closed.Load() == 1 }, time.Minute, time.Millisecond)
	}
}

// A cut output must not look whole: people want to read its end.
func TestOutputThatIsTooLongIsNotTakenForAllOfIt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.set(func() { s.journal = strings.Repeat("a line\n", maxOutput/7) + "too much\n" })
	_, err := s.client(t).Evidence(t.Context(), s.host, "kubelet.service")
	require.ErrorContains(t, err, "printed more than")
}

func TestEvidenceIsTheEndOfTheJournalAndFitForPeople(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	var all strings.Builder
	for i := range 400 {
		fmt.Fprintf(&all, "2026-11-21T12:00:00+0000 cp-1 kubelet[7]: line %d \x1b[31mred\x1b[0m \xff\x00 \u202eback ü\r\n", i)
	}
	s.set(func() { s.journal = all.String() })
	got, err := s.client(t).Evidence(t.Context(), s.host, "kubelet.service")
	require.NoError(t, err)
	require.LessOrEqual(t, len(got), 4<<10)
	require.Greater(t, len(got), 3<<10)
	require.True(t, strings.HasSuffix(got, "line 399 [31mred[0m  back ü"), got[len(got)-60:])
	require.True(t, strings.HasPrefix(got, "2026-11-21T"), "whole lines")
	requireFit(t, got)
	s.set(func() { s.journal = "-- No entries --\n" })
	got, err = s.client(t).Evidence(t.Context(), s.host, "kubelet.service")
	require.NoError(t, err)
	require.Equal(t, "-- No entries --", got)
}
