package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/civosim"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// A silence is made beforehand in one of two Alertmanagers that do not know each other. The other
// one posts the alert, and nothing is done. People see who made the silence, why, and until when.
func TestASilenceOnOneAlertmanagerHolds(t *testing.T) {
	y := newYard(t)
	back := make(chan struct{}, 1) // each rebooted machine waits for its turn, and so does the repair
	y.machines(lab.CivoOptions{RebootTime: time.Second, Cures: func(civosim.Instance, civosim.Op) bool {
		<-back
		return true
	}})
	t.Cleanup(func() { close(back) })
	// One replica may learn of an alert later than the other. So the repair also waits for
	// approval, and nothing is done before both replicas know the alert.
	d := y.run(lab.DrydockOptions{Config: several(config(asking()))})
	const node = "node-50"

	for round, replica := range []int{1, 0} {
		comment := []string{"the disk is being swapped", "the disk is swapped, the fan is not"}[round]
		s := y.silence(replica, author, comment, "alertname=NodeNotReady", "node="+node)
		ends := y.standing(replica, s.id).EndsAt.UTC().Truncate(time.Second)
		y.fail(node)
		r := y.held(node, remediations.ReasonSilenced)
		for _, says := range []string{s.id, author, comment, ends.Format(time.RFC3339)} {
			require.Contains(t, r.Hold.Message, says)
		}
		require.NotNil(t, r.Hold.Until)
		require.Equal(t, ends, r.Hold.Until.UTC())
		y.awaitEvent(node, "RepairHeld", "Silenced: covered by silence "+s.id+" of "+author+" ("+comment+") until "+ends.Format(time.RFC3339))
		y.annotate(node, remediations.ApproveKey, r.ID)
		require.Equal(t, round, y.reboots(node))

		s.expire()
		ended := time.Now()
		y.record(node, "going on", func(r *remediations.Record) bool { return r.Intent != nil })
		t.Logf("it went on %s after the silence ended", time.Since(ended).Round(10*time.Millisecond))
		back <- struct{}{}
		y.entry(node, func(e remediations.Entry) bool { return e.ID == r.ID && e.Outcome == remediations.OutcomeRecovered })
		require.Equal(t, round+1, y.reboots(node))
	}
	y.measures(d, `drydock_holds{policy="node-not-ready",reason="Silenced"} 0`)
}

// A silence is made while the first reboot is verified. Its result is recorded as it was, and the
// second reboot waits.
func TestASilenceHoldsTheSecondAttempt(t *testing.T) {
	y := newYard(t)
	const node = "node-51"
	comeBack := y.away(helpedAgain(node))
	d := y.run(lab.DrydockOptions{Config: config(twice(soon, nil))})
	posts := y.relay(d, nil)
	y.fail(node)
	y.record(node, "the first reboot verified", verifying)
	posts.fromBoth(node)
	expire := y.silenceBoth("I am at it", "node="+node)
	r := y.held(node, remediations.ReasonSilenced)
	require.Equal(t, remediations.PhasePending, r.Phase)
	require.Equal(t, []string{"reboot:1"}, r.Done.Texts())
	require.Equal(t, remediations.CallAccepted, r.Intent.Outcome, "what was issued is on record")
	require.Equal(t, 1, r.Step.Index, "the next one is what waits")
	y.ledger("its slot is free", func(l *ledger.Ledger) bool { return len(l.Slots) == 0 })
	require.Equal(t, 1, y.reboots(node))

	// Alertmanager has already posted this alert, so it does not post again now.
	before := y.learnt(d)
	expire()
	ended := time.Now()
	y.record(node, "going on", underRepair)
	t.Logf("it went on %s after the silence ended", time.Since(ended).Round(10*time.Millisecond))
	require.Equal(t, before, y.learnt(d), "nobody told Drydock")
	comeBack()
	e := y.recovers(node, 2)
	require.Equal(t, r.ID, e.ID)
}

// A silence is made while a reboot that helped is verified. The repair is not interrupted: the cure
// is proven and recorded during the silence.
func TestASilenceTearsNothing(t *testing.T) {
	y := newYard(t)
	const node = "node-52"
	comeBack := y.away(nil)
	y.run(lab.DrydockOptions{Config: config(policy(nil))})
	y.fail(node)
	y.record(node, "the reboot verified", verifying)
	y.silenceBoth("I am at it", "node="+node)
	comeBack()
	y.recovers(node, 1)
}

// After each of these sequences Alertmanager, as measured, posts nothing or something misleading.
// Drydock queries the real state.

func TestASilenceEndsAndNothingIsSent(t *testing.T) {
	y := newYard(t)
	const node = "node-53"
	comeBack := y.away(nil)
	d := y.run(lab.DrydockOptions{Config: config(asking())})
	posts := y.relay(d, nil)
	approve := y.waiting(node)
	posts.fromBoth(node)
	expire := y.silenceBoth("not now", "node="+node)
	y.held(node, remediations.ReasonSilenced)
	approve()
	before := y.learnt(d)
	expire()
	y.record(node, "going on", underRepair)
	require.Equal(t, before, y.learnt(d), "nobody told Drydock")
	comeBack()
	y.recovers(node, 1)
}

func TestResolvedAndFiredAgainUnderASilence(t *testing.T) {
	y := newYard(t)
	const node = "node-54"
	comeBack := y.away(nil)
	d := y.run(lab.DrydockOptions{Config: config(asking())})
	posts := y.relay(d, nil)
	approve := y.waiting(node)
	posts.fromBoth(node)
	expire := y.silenceBoth("not now", "node="+node)
	y.held(node, remediations.ReasonSilenced)
	approve()
	before := y.learnt(d)

	require.NoError(t, y.lab.Heal(t.Context(), node, ""))
	y.alertmanagers(node, "resolved", isState(""))
	y.held(node, remediations.ReasonAlertUnconfirmed)
	y.fail(node)
	y.alertmanagers(node, "silenced", isState("suppressed"))
	y.held(node, remediations.ReasonSilenced)
	require.Zero(t, y.reboots(node))
	expire()
	y.record(node, "going on", underRepair)
	require.Equal(t, before, y.learnt(d), "neither its end nor its return was told")
	comeBack()
	y.recovers(node, 1)
}

// Two nodes are in one group. One is silenced and firing, the other is resolved. The post says
// "resolved" for the whole group.
func TestAGroupThatSaysResolved(t *testing.T) {
	y := newYard(t)
	const quiet, other = "node-55", "node-56"
	d := y.run(lab.DrydockOptions{Config: config(asking())})
	posts := y.relay(d, map[string]any{"route": map[string]any{"group_by": []string{"alertname"}}})
	approve := y.waiting(quiet)
	expire := y.silenceBoth("not now", "node="+quiet)
	held := y.held(quiet, remediations.ReasonSilenced)
	approve()

	approveOther := y.waiting(other)
	approveOther()
	y.recovers(other, 1)
	posts.await("the post of the group", 1, func(p post) bool {
		return p.Status == "resolved" && p.of(other) == "resolved" && p.of(quiet) == ""
	})
	r := remediations.ReadJournal(y.node(quiet)).Record
	require.NotNil(t, r, "the group's word is not its alerts'")
	require.Equal(t, held.ID, r.ID)
	require.Equal(t, remediations.PhasePending, r.Phase)
	require.Nil(t, r.Intent)
	require.Zero(t, y.reboots(quiet))

	expire()
	require.Equal(t, held.ID, y.recovers(quiet, 1).ID)
	require.Equal(t, 1, y.reboots(other))
}

func TestResolvedAndFiredAgainBetweenTwoFlushes(t *testing.T) {
	y := newYard(t)
	const node = "node-57"
	comeBack := y.away(nil)
	d := y.run(lab.DrydockOptions{Config: config(asking())})
	posts := y.relay(d, map[string]any{"route": map[string]any{"group_interval": "1h"}})
	approve := y.waiting(node)
	posts.fromBoth(node)
	first := remediations.AlertsOn(y.node(node).Annotations)[0].StartsAt
	before := y.learnt(d)

	require.NoError(t, y.lab.Heal(t.Context(), node, ""))
	y.alertmanagers(node, "resolved", isState(""))
	y.held(node, remediations.ReasonAlertUnconfirmed)
	approve()
	require.Zero(t, y.reboots(node), "it is over, though nobody said so")
	y.fail(node)
	y.record(node, "going on", underRepair)
	require.Equal(t, before, y.learnt(d), "neither its end nor its return was told")
	require.Equal(t, first, remediations.AlertsOn(y.node(node).Annotations)[0].StartsAt, "so this is old")
	comeBack()
	y.recovers(node, 1)
}

func TestFiredAndResolvedBeforeTheFirstFlush(t *testing.T) {
	y := newYard(t)
	const node, control = "node-58", "node-59"
	d := y.run(lab.DrydockOptions{Config: map[string]any{"policies": []any{for1(control, policy(nil)), policy(map[string]any{"for": "10m"})}}})
	y.configure(d, map[string]any{"route": map[string]any{"group_wait": "1h"}})
	before := y.learnt(d)
	y.fail(node)
	y.held(node, remediations.ReasonTooYoung)
	require.NoError(t, y.lab.Heal(t.Context(), node, ""))
	y.alertmanagers(node, "resolved", isState(""))
	y.held(node, remediations.ReasonAlertUnconfirmed)
	require.Zero(t, y.reboots(node))

	// The control: an alert that stays and need not be that old. No post comes for an hour, and the
	// repair needs none.
	y.fail(control)
	y.recovers(control, 1)
	require.Equal(t, before, y.learnt(d))
}

// A person makes a silence and right after that removes a pause. An answer of Alertmanager from
// before that does not justify an action.
func TestASilenceMadeBeforeAPauseEnded(t *testing.T) {
	y := newYard(t)
	const node = "node-4"
	y.run(lab.DrydockOptions{Config: config(policy(nil))})
	y.annotate(node, remediations.PauseKey, "true")
	y.fail(node)
	y.held(node, remediations.ReasonPaused)
	s := y.silence(1, author, "the pager, too", "node="+node)
	y.alertmanagers(node, "at both", func(state string, _ []string) bool { return state != "" })
	y.unannotate(node, remediations.PauseKey)
	y.held(node, remediations.ReasonSilenced)
	require.Zero(t, y.reboots(node))
	s.expire()
	y.recovers(node, 1)
}

// Another alert inhibits this one, by an inhibit rule, in one of the Alertmanagers.
func TestAnInhibitionHolds(t *testing.T) {
	y := newYard(t)
	const node = "node-59"
	d := y.run(lab.DrydockOptions{Config: config(asking())}) // as with a silence in one replica
	y.configure(d, inhibits(node))
	end := y.inhibit()
	y.fail(node)
	r := y.held(node, remediations.ReasonInhibited)
	y.annotate(node, remediations.ApproveKey, r.ID)
	require.Contains(t, r.Hold.Message, "RackWithoutPower")
	y.awaitEvent(node, "RepairHeld", "Inhibited: inhibited by the alert RackWithoutPower")
	require.Zero(t, y.reboots(node))

	end()
	require.Equal(t, r.ID, y.recovers(node, 1).ID)
}

// A time interval that mutes the groups which go to Drydock holds the repair. One that mutes
// another receiver's groups does not.
func TestAMuteTimeHolds(t *testing.T) {
	y := newYard(t)
	const node, control = "node-0", "node-1"
	d := y.run(lab.DrydockOptions{Config: config(asking())})
	muted := func(route map[string]any) map[string]any {
		route["mute_time_intervals"] = []string{"every-day"}
		watchdog := map[string]any{"matchers": []string{`alertname="Watchdog"`}, "receiver": "nobody"}
		return map[string]any{
			"time_intervals": []any{map[string]any{"name": "every-day", "time_intervals": []any{map[string]any{"weekdays": []string{"sunday:saturday"}}}}},
			"route":          map[string]any{"routes": []any{watchdog, route, map[string]any{"receiver": "drydock"}}},
		}
	}
	y.configure(d, muted(map[string]any{"receiver": "nobody", "continue": true}))
	approve := y.waiting(control)
	approve()
	y.recovers(control, 1)

	approve = y.waiting(node)
	y.configure(d, muted(map[string]any{"receiver": "drydock"}))
	r := y.held(node, remediations.ReasonSilenced)
	require.Contains(t, r.Hold.Message, "muted by Alertmanager's time interval every-day")
	y.awaitEvent(node, "RepairHeld", "Silenced: muted by Alertmanager's time interval every-day")
	require.Nil(t, r.Hold.Until, "Alertmanager does not say when a mute time ends")
	approve()
	y.alertmanagers(node, "muted", func(_ string, by []string) bool { return len(by) > 0 })
	require.Zero(t, y.reboots(node))

	y.configure(d, nil)
	require.Equal(t, r.ID, y.recovers(node, 1).ID)
}

// Drydock's own silence keeps the alert away from people, and never holds Drydock. Drydock knows it
// by the ID in the record. A silence of another author that only looks like it holds the repair.
func TestDrydocksOwnSilence(t *testing.T) {
	y := newYard(t)
	const node, forged = "node-2", "node-3"
	comeBack := y.away(helpedAgain(node))
	c := config(twice(soon, nil))
	c["alertmanager"] = map[string]any{"silenceRepairs": true}
	y.run(lab.DrydockOptions{Config: c})
	t.Cleanup(y.expireAll)

	y.fail(node)
	r := y.record(node, "the first reboot verified, silenced", func(r *remediations.Record) bool {
		return verifying(r) && r.Step.Index == 0 && r.Silence != ""
	})
	own := y.standing(0, r.Silence)
	require.Equal(t, "active", own.Status.State)
	require.Equal(t, "drydock", own.CreatedBy)
	require.Contains(t, own.Comment, r.ID)
	require.Len(t, own.Matchers, 1)
	require.Equal(t, "node", own.Matchers[0].Name)
	require.Equal(t, node, own.Matchers[0].Value)
	require.Equal(t, r.Deadline, own.EndsAt.UTC().Truncate(time.Second))

	// The silence ends when the time for the proof ends. If a person extends it, it is still
	// Drydock's own and holds nothing.
	require.Contains(t, y.amtool(0, "silence", "update", "--duration=20m", r.Silence), r.Silence)
	next := y.record(node, "the second reboot verified", func(r *remediations.Record) bool { return verifying(r) && r.Step.Index == 1 && r.Silence != own.ID })
	require.Equal(t, "active", y.standing(0, own.ID).Status.State)
	y.amtool(0, "silence", "expire", own.ID)
	require.Equal(t, "active", y.standing(0, next.Silence).Status.State)
	comeBack()
	require.Equal(t, r.ID, y.recovers(node, 2).ID)
	require.Eventually(t, func() bool { return y.standing(0, next.Silence).Status.State == "expired" }, lab.Patience, 50*time.Millisecond, "it ends with the repair")

	like := "repair aaaaaa: reboot " + forged + " (attempt 1) by policy node-not-ready"
	a, b := y.silence(0, "drydock", like, "node="+forged), y.silence(1, "drydock", like, "node="+forged)
	y.fail(forged)
	require.Regexp(t, a.id+"|"+b.id, y.held(forged, remediations.ReasonSilenced).Hold.Message)
	require.Zero(t, y.reboots(forged))
	a.expire()
	b.expire()
	y.recovers(forged, 1)
}

// expireAll ends all silences.
func (y *yard) expireAll() {
	for replica := range 2 {
		ids, err := y.tryAmtool(replica, "silence", "query", "--quiet")
		if err != nil {
			continue
		}
		for id := range strings.FieldsSeq(ids) {
			_, _ = y.tryAmtool(replica, "silence", "expire", id)
		}
	}
}
