package engine

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
)

// checkLeaderWrite checks a write of a leader repair's record.
func (w *world) checkLeaderWrite(i *instance, cur *corev1.Node, c NodeChange) {
	v := c.Annotations[remediations.LocationKey]
	if v == nil {
		return
	}
	next, err := modelRegistry.DecodeRecord(*v)
	if err != nil || next.Location == "" {
		w.fail("wrote a leader's record that cannot be read: %v: %s", err, *v)
		return
	}
	if c.Unschedulable != nil || c.OutOfService != nil {
		w.fail("8: a leader's repair changed more of %s than its record", cur.Name)
	}
	was := modelRegistry.ReadJournal(cur).Records[remediations.LocationKey]
	if was != nil && was.ID != next.ID && was.Phase.InFlight() {
		w.fail("2: the repair %s of the leader of %s, which %s repairs", next.ID, next.Location, was.ID)
	}
	if next.Phase == remediations.PhaseExhausted && len(next.Undo) == 0 {
		w.checkPutBack(next)
	}
	if next.Intent != nil && !sameIntent(was, next) {
		if next.Intent.ID == "" { // an attempt was given back
			if was == nil || slices.ContainsFunc(w.mesh.moved, func(m moved) bool { return m.intent == was.Intent.ID }) {
				w.fail("4: an attempt of %s was given back, and it moved a leader", next.ID)
			}
		} else {
			w.checkLeaderIntent(i, cur, was, next)
		}
	}
}

// sameIntent reports whether the record has the same intent as before. An attempt that was given
// back gets a name when the repair continues without it, and that does not count as a new intent.
func sameIntent(was, next *remediations.Record) bool {
	if was == nil || was.Intent == nil {
		return false
	}
	named := was.ID == next.ID && was.Intent.ID == "" && next.Intent.ID == next.ID+"-withheld"
	return named || was.Intent.ID == next.Intent.ID
}

// involved are the nodes that a leader's repair keeps free of other repairs.
func involved(node string, r *remediations.Record) []string {
	out := []string{node}
	for _, m := range r.Moves {
		out = append(out, m.To)
	}
	return out
}

// leadersInFlight are the records in flight on other Nodes.
func (w *world) leadersInFlight(except string) map[string]*remediations.Record {
	out := w.leaderRecords()
	maps.DeleteFunc(out, func(n string, r *remediations.Record) bool { return n == except || !r.Phase.InFlight() })
	return out
}

// checkLeaderIntent checks a new intent.
func (w *world) checkLeaderIntent(i *instance, cur *corev1.Node, was, next *remediations.Record) {
	p, where := i.config.Policy(next.Policy), w.mesh.places[next.Location]
	if p == nil || where == nil {
		w.fail("10: an intent for the location %q by the policy %s", next.Location, next.Policy)
		return
	}
	to, since, looked := next.Intent.Successor, w.paused[cur.Name], 10*time.Second+w.mesh.lookTakes+truncated
	flying := w.leadersInFlight(cur.Name)
	switch {
	case next.Phase != remediations.PhaseActing:
		w.fail("4: a new intent for a leader in phase %s", next.Phase)
	case p.Mode != remediations.ModeEnforce:
		w.fail("1: an intent for a leader in observe mode")
	case !since.IsZero():
		w.fail("9: an intent for the leader %s, which a person has held since %s", cur.Name, since)
	case !w.paused[to].IsZero() && time.Since(w.paused[to]) > looked:
		w.fail("9: an intent to make %s a leader, which a person has held since %s", to, w.paused[to])
	case !w.cancelled[next.ID].IsZero():
		w.fail("9: an intent of the leader's repair %s, cancelled at %s", next.ID, w.cancelled[next.ID])
	case p.Approval && (was == nil || was.ID != next.ID || was.Intent == nil) && cur.Annotations[remediations.ApproveKey] != next.ID:
		w.fail("AwaitingApproval: %s began to move the leader of %s, and nobody approved it", next.ID, next.Location)
	case len(flying)+1 > i.config.Limits.Locations.Concurrent:
		w.fail("3: %d leaders are under repair with %s, the limit is %d", len(flying)+1, next.ID, i.config.Limits.Locations.Concurrent)
	case len(next.Moves) > p.Plan[0].Attempts:
		w.fail("S2: the intent %s is move %d of its repair", next.Intent.ID, len(next.Moves))
	case w.mesh.places[next.Location].leader == to && time.Since(where.led) > looked:
		w.fail("S2: an intent to make %s a leader, which it is", to)
	case where.leader != cur.Name && !slices.Contains(involved(cur.Name, next), where.leader) && time.Since(where.led) > looked:
		w.fail("S2: an intent on %s for location %s, which %s leads since %s", cur.Name, next.Location, where.leader, where.led)
	case !where.bad && time.Since(where.since) > looked:
		w.fail("S2-3: an intent for location %s, which answers since %s", next.Location, where.since)
	case where.held != "" && time.Since(where.heldSince) > looked:
		w.fail("S2-7: an intent for location %s, held since %s: %s", next.Location, where.heldSince, where.held)
	case where.hidden && time.Since(where.hiddenSince) > looked:
		w.fail("6: an intent for location %s, of which nobody knows anything since %s", next.Location, where.hiddenSince)
	}
	for k, m := range next.Moves[:len(next.Moves)-1] {
		if m.To == to {
			w.fail("S2: the successor %s of %s was tried by its attempt %d", to, next.Intent.ID, k+1)
		}
	}
	for _, n := range involved(cur.Name, next) {
		if r := w.record(n); r != nil && r.Phase.InFlight() {
			w.fail("2: an intent for the leader %s and its successor, and %s is under repair %s", cur.Name, n, r.ID)
		}
	}
	for on, r := range flying {
		if r.Location == next.Location {
			w.fail("2: the repair %s of the leader of %s beside %s on %s", next.ID, next.Location, r.ID, on)
		}
	}
	w.checkTurn(i, cur, was, next)
}

// checkTurn checks two things before a repair of a leader: its slot in the ledger, and the time
// since the last repair of the same location's leader.
func (w *world) checkTurn(i *instance, cur *corev1.Node, was, next *remediations.Record) {
	if l := w.book(); l != nil {
		if !slices.ContainsFunc(l.Slots, func(s ledger.Slot) bool {
			return s.Kind == remediations.KindLocation && s.Node == cur.Name
		}) {
			w.fail("3: the leader's intent %s has no slot in the ledger", next.Intent.ID)
		}
		if l.Failing(next.Policy) {
			w.fail("PolicyFailing: the intent %s of policy %s, which is stopped", next.Intent.ID, next.Policy)
		}
	}
	for repair, at := range w.mesh.begun[next.Location] {
		if repair != next.ID && time.Since(at)+truncated < i.config.Limits.Locations.PerLocation {
			w.fail("S2-9: the intent %s in location %s, where %s moved the leader at %s", next.Intent.ID, next.Location, repair, at)
		}
	}
	if w.mesh.begun[next.Location] == nil {
		w.mesh.begun[next.Location] = map[string]time.Time{}
	}
	w.mesh.begun[next.Location][next.ID] = time.Now()
	if was == nil || was.ID != next.ID || was.Intent == nil {
		w.mesh.before[next.ID] = w.keys(next.Location)
		w.mesh.touched[next.Location] = false
	}
}

// checkMove checks a move when it begins: invariants 1, 2, 4, 5, 6, 9.
func (w *world) checkMove(i *instance, m remediations.Move) {
	now := time.Now()
	for _, n := range []string{m.From, m.To} {
		w.checkName(n)
	}
	var on string
	var r *remediations.Record
	for n, x := range w.leaderRecords() {
		if x.Location == m.Location && x.Phase.InFlight() && x.Back == nil && x.Intent.Successor == m.To {
			on, r = n, x
		}
	}
	if r == nil {
		w.fail("4: a move of the leader of %s to %s, which is on no record", m.Location, m.To)
		return
	}
	for _, before := range w.mesh.moved {
		if before.intent == r.Intent.ID && (!before.lost || before.by == i) {
			w.fail("4: the intent %s moved a leader twice", r.Intent.ID)
		}
	}
	w.mesh.moved = append(w.mesh.moved, moved{m, r.Intent.ID, r.ID, now, i, false})
	if p := i.config.Policy(r.Policy); p == nil || p.Mode != remediations.ModeEnforce {
		w.fail("1: a move of the leader of %s in observe mode", m.Location)
	}
	if late := now.Add(i.offset).Sub(r.Intent.At); late > 10*time.Second+truncated {
		w.fail("4: the move %s went out %s after its intent", r.Intent.ID, late)
	}
	for _, n := range involved(on, r) {
		if since, held := w.paused[n]; held && now.Sub(since) > lastWord && (n == on || n == m.To) {
			w.fail("9: a move of the leader of %s, and %s is held since %s", m.Location, n, since)
		}
		if x := w.record(n); x != nil && x.Phase.InFlight() && (n == on || n == m.To) {
			w.fail("2: a move of the leader of %s, and %s is under repair", m.Location, n)
		}
	}
	if since, cancelled := w.cancelled[r.ID]; cancelled && now.Sub(since) > lastWord {
		w.fail("9: a move of the leader of %s, cancelled at %s", m.Location, since)
	}
	if !w.confirmed(i, r.Cause.Alert, now) {
		w.fail("5: a move of the leader of %s, and no Alertmanager had said so in the last 30 s", m.Location)
	}
	switch {
	case w.sourceDead && now.Sub(w.sourceDied) > alertLife/2+lookedFor:
		w.fail("6: a move of the leader of %s, and the source of its alert died at %s", m.Location, w.sourceDied)
	case len(w.nodes) < 3:
	case !w.leasesFrozen.IsZero() && now.Sub(w.leasesFrozen) > leaseFor+lookedFor:
		w.fail("6: a move of the leader of %s, and no lease is renewed since %s", m.Location, w.leasesFrozen)
	case i.offset > 5*time.Minute || i.offset < -5*time.Minute:
		w.fail("6: a move of the leader of %s by a Drydock whose clock is %s wrong", m.Location, i.offset)
	}
}

// checkKey checks a move each time it writes a key. The intent is still on record and young enough
// for a call, and no person has stopped it.
func (w *world) checkKey(i *instance, m remediations.Move) {
	now := time.Now()
	on, r := w.intended(m)
	if r == nil {
		w.fail("4: a key is written for a move of the leader of %s to %s, which is on no record", m.Location, m.To)
		return
	}
	switch late := now.Add(i.offset).Sub(r.Intent.At); {
	case (r.Phase != remediations.PhaseActing && now.Sub(r.Since) > truncated) || r.Back != nil: // another leader may have written at this very moment
		w.fail("4: a key for the move %s is written, whose repair is %s", r.Intent.ID, r.Phase)
	case late > 10*time.Second+truncated:
		w.fail("4: a key for the move %s is written %s after its intent", r.Intent.ID, late)
	}
	for _, n := range []string{on, m.To} {
		if since, held := w.paused[n]; held && now.Sub(since) > lastWord {
			w.fail("9: a key for the move %s is written, and %s is held since %s", r.Intent.ID, n, since)
		}
	}
}

// intended returns the record with the youngest intent of moving the leadership there. An older
// one, long exhausted, may have had the same successor.
func (w *world) intended(m remediations.Move) (on string, youngest *remediations.Record) {
	for n, r := range w.leaderRecords() {
		if r.Location == m.Location && r.Intent != nil && r.Intent.Successor == m.To && (youngest == nil || r.Intent.At.After(youngest.Intent.At)) {
			on, youngest = n, r
		}
	}
	return on, youngest
}

// checkBack checks that a move may be put back: invariants 1, 2, 9.
func (w *world) checkBack(i *instance, m remediations.Move) {
	for n, r := range w.leaderRecords() {
		if r.Back == nil || !slices.ContainsFunc(r.Moves, func(x remediations.Move) bool { return x.To == m.To && x.Location == m.Location }) {
			continue
		}
		if p := i.config.Policy(r.Policy); p == nil || p.Mode != remediations.ModeEnforce {
			w.fail("1: a move of the leader of %s is put back in observe mode", m.Location)
		}
		if since, held := w.paused[n]; held && time.Since(since) > lastWord {
			w.fail("9: a move of the leader %s is put back, and a person has held it since %s", n, since)
		}
		w.mesh.backs = append(w.mesh.backs, moved{m, r.PutBackID(), r.ID, time.Now(), i, false})
		if w.mesh.begun[m.Location] == nil { // a person deleted the ledger meanwhile
			w.mesh.begun[m.Location] = map[string]time.Time{}
		}
		w.mesh.begun[m.Location][r.ID] = time.Now()
		return
	}
	w.fail("8: a move of the leader of %s to %s is put back, and no record says so", m.Location, m.To)
}

// checkPutBack checks invariant 8: the keys are as they were before the repair, unless another
// writer changed one.
func (w *world) checkPutBack(r *remediations.Record) {
	if before := w.mesh.before[r.ID]; before != nil && !w.mesh.touched[r.Location] && !maps.Equal(before, w.keys(r.Location)) {
		w.fail("8: the leader's repair %s says that it put everything back: the keys were %v, and are %v", r.ID, before, w.keys(r.Location))
	}
}

// checkLeaderEnd checks invariant 7 for a leader.
func (w *world) checkLeaderEnd(i *instance, cur *corev1.Node, e remediations.Entry) {
	w.mesh.ended = append(w.mesh.ended, e)
	was := modelRegistry.ReadJournal(cur).Records[remediations.LocationKey]
	switch {
	case was == nil || was.ID != e.ID:
		w.fail("7: the leader's repair %s ended, and %s carries no such record", e.ID, cur.Name)
		return
	case e.Outcome != remediations.OutcomeRecovered && e.Outcome != remediations.OutcomeSelfRecovered:
		return
	}
	where, looked := w.mesh.places[e.Location], 16*time.Second+w.mesh.lookTakes
	if where.bad && time.Since(where.since) > looked {
		w.fail("7: %s of location %s, which is dark since %s", e.Outcome, e.Location, where.since)
	}
	if e.Outcome == remediations.OutcomeRecovered && where.leader != was.Intent.Successor && time.Since(where.led) > looked {
		w.fail("7: Recovered, and %s leads location %s, not %s", where.leader, e.Location, was.Intent.Successor)
	}
	if p := i.config.Policy(e.Policy); p != nil && !where.bad && time.Since(where.well)+truncated < p.ProofFor {
		w.fail("7: %s of location %s after %s, proofFor is %s", e.Outcome, e.Location, time.Since(where.well), p.ProofFor)
	}
	if w.sourceDead && time.Since(w.sourceDied) > sendEvery+lookedFor+10*time.Second {
		w.fail("7: %s of location %s, and the source that would say otherwise died at %s", e.Outcome, e.Location, w.sourceDied)
	}
	if !w.seenGone(i, was.Cause.Alert) {
		w.fail("7: %s of location %s, and nobody said that its alert is gone", e.Outcome, e.Location)
	}
}

// checkNodeIntent: a node's repair and a leader's repair that involves the node exclude each other.
func (w *world) checkNodeIntent(name string) {
	if w.mesh == nil {
		return
	}
	for on, r := range w.leadersInFlight("") {
		if slices.Contains(involved(on, r), name) {
			w.fail("2: an intent on %s, and %s moves the leadership of %s", name, r.ID, r.Location)
		}
	}
}
