package remediations_test

import (
	"fmt"
	"hash/fnv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/testing/scene"
)

var anyAlert = rapid.Custom(func(t *rapid.T) Alert {
	return Alert{
		V: RecordVersion, Name: scene.AnyText.Draw(t, "name"), Policy: "p" + scene.AnyText.Draw(t, "policy"),
		Status:   rapid.SampledFrom([]string{StatusFiring, StatusResolved}).Draw(t, "status"),
		StartsAt: scene.AnyTime.Draw(t, "starts"), ReceivedAt: scene.AnyTime.Draw(t, "received"),
		Labels:      rapid.MapOfN(scene.AnyID, scene.AnyText, 0, 4).Draw(t, "labels"),
		Fingerprint: rapid.StringMatching(`[0-9a-f]{16}`).Draw(t, "fp"),
	}
})

// TestReadsIsSame: if Alert.Reads accepts a text, the text decodes to the same alert. Every alert
// accepts its own encoding.
func TestReadsIsSame(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(name string) Alert {
			text := rapid.SampledFrom([]string{"", "a", "b", `"receivedAt":"`, `","x":"`, "é\u2028<"})
			return Alert{
				V: 1, Name: text.Draw(rt, name+"'s name"), Policy: "p" + text.Draw(rt, name+"'s policy"), Status: rapid.SampledFrom([]string{"firing", "resolved"}).Draw(rt, name+"'s status"),
				StartsAt: time.Unix(rapid.Int64Range(0, 1).Draw(rt, name+"'s begin"), 0).UTC(), ReceivedAt: time.Unix(rapid.Int64Range(0, 9).Draw(rt, name+"'s arrival"), 0).UTC(),
				Labels: map[string]string{text.Draw(rt, name+"'s label"): text.Draw(rt, name+"'s value")}, Fingerprint: "0123456789abcdef",
			}
		}
		a, b := draw("a"), draw("b")
		require.Equal(rt, a.Same(b), a.Reads(b.Encode()))
		later := a
		later.ReceivedAt = b.ReceivedAt
		require.True(rt, later.Reads(a.Encode()))
		require.False(rt, a.Reads(strings.Replace(a.Encode(), `"receivedAt":"1970`, `"receivedAt":"long ago`, 1)))
	})
}

func TestAlertReadsBackAsWritten(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anyAlert.Draw(t, "alert")
		got, err := DecodeAlert(a.Key(), a.Encode())
		require.NoError(t, err)
		require.Equal(t, a, got)
		require.True(t, a.Same(got))
	})
}

func TestAlertThatDrydockWouldNotWriteIsNotRead(t *testing.T) {
	const good = `{"v":1,"alertname":"A","policy":"p","status":"firing","startsAt":"2026-01-01T00:00:00Z","receivedAt":"2026-01-01T00:00:00Z","labels":{}}`
	_, err := DecodeAlert(AlertPrefix+scene.FP, good)
	require.NoError(t, err, "the control")
	for name, text := range map[string]string{
		"empty":               "",
		"an unknown field":    strings.Replace(good, `"v":1`, `"v":1,"x":0`, 1),
		"a later version":     strings.Replace(good, `"v":1`, `"v":2`, 1),
		"no policy":           strings.Replace(good, `"policy":"p",`, ``, 1),
		"another status":      strings.Replace(good, `firing`, `burning`, 1),
		"something behind it": good + "1",
		"a brace behind it":   good + "}",
		"a bracket behind it": good + "]",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := DecodeAlert(AlertPrefix+scene.FP, text)
			require.Error(t, err)
			require.Empty(t, AlertsOn(map[string]string{AlertPrefix + scene.FP: text}))
		})
	}
}

func TestAlertsComeOldestFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		on := map[string]string{"other/key": "x", NodeRepairKey: "{}"}
		for _, a := range rapid.SliceOfN(anyAlert, 0, 6).Draw(t, "alerts") {
			on[a.Key()] = a.Encode()
		}
		got := AlertsOn(on)
		require.Len(t, got, len(on)-2)
		for i := 1; i < len(got); i++ {
			require.False(t, got[i].StartsAt.Before(got[i-1].StartsAt))
		}
	})
}

// TestAPostChangesNeitherTheArrivalNorTheCancel: no post changes when Drydock first saw the alert
// or which repair was cancelled, even if the stored arrival is from a clock that was ahead.
func TestAPostChangesNeitherTheArrivalNorTheCancel(t *testing.T) {
	cancel := &CancelledRepair{ID: "r1", At: scene.Noon}
	old := Alert{Fingerprint: scene.FP, Status: StatusFiring, ReceivedAt: scene.Noon, Cancelled: cancel}
	for name, c := range map[string]struct {
		posted Alert
		first  time.Time
		cancel *CancelledRepair
	}{
		"it fires":                      {Alert{Fingerprint: scene.FP, Status: StatusFiring, ReceivedAt: scene.Noon.Add(time.Hour)}, scene.Noon, cancel},
		"it has ended":                  {Alert{Fingerprint: scene.FP, Status: StatusResolved, ReceivedAt: scene.Noon.Add(time.Hour)}, scene.Noon, cancel},
		"in the same second":            {Alert{Fingerprint: scene.FP, Status: StatusFiring, ReceivedAt: scene.Noon}, scene.Noon, cancel},
		"a clock was ahead":             {Alert{Fingerprint: scene.FP, Status: StatusFiring, ReceivedAt: scene.Noon.Add(-time.Hour)}, scene.Noon.Add(-time.Hour), cancel},
		"another alert, as the control": {Alert{Fingerprint: "ffffffffffffffff", Status: StatusFiring, ReceivedAt: scene.Noon.Add(time.Hour)}, scene.Noon.Add(time.Hour), nil},
	} {
		got := c.posted.SeenSince(old)
		require.Equal(t, c.first, got.ReceivedAt, name)
		require.Equal(t, c.cancel, got.Cancelled, name)
		require.Equal(t, c.posted.Status, got.Status, name)
	}
}

// TestACancelThatTheCacheDoesNotShowStays: the cache of Nodes may be behind and show an alert
// without its cancel. The cancel must not be lost then.
func TestACancelThatTheCacheDoesNotShowStays(t *testing.T) {
	earlier, later := &CancelledRepair{ID: "r1", At: scene.Noon}, &CancelledRepair{ID: "r2", At: scene.Noon}
	adopted := Alert{Fingerprint: scene.FP, ReceivedAt: scene.Noon, Cancelled: earlier}
	require.Equal(t, earlier, adopted.SeenSince(Alert{Fingerprint: scene.FP, ReceivedAt: scene.Noon}).Cancelled)
	require.Equal(t, later, adopted.SeenSince(Alert{Fingerprint: scene.FP, ReceivedAt: scene.Noon, Cancelled: later}).Cancelled, "control")
}

func TestFingerprintIsThatOfAlertmanager(t *testing.T) {
	// FNV-1a over the sorted names and values, each followed by 0xff.
	h := fnv.New64a()
	_, _ = h.Write([]byte("alertname\xffNodeDown\xffnode\xffn1\xff"))
	require.Equal(t, fmt.Sprintf("%016x", h.Sum64()), Fingerprint(map[string]string{"node": "n1", "alertname": "NodeDown"}))
}

func TestOnlyTheLabelsThatAreNeededAreKept(t *testing.T) {
	c := &Config{ClusterLabel: "cluster"}
	p := &Policy{Name: "p", Labels: []string{"node"}}
	labels := map[string]string{"alertname": "A", "node": "n1", "cluster": "prod", "severity": "page", "secret": "x", "runbook": "y"}
	a := c.NewAlert(p, labels, StatusFiring, scene.Noon, scene.Noon.Add(time.Millisecond))
	require.Equal(t, map[string]string{"node": "n1", "cluster": "prod", "severity": "page"}, a.Labels)
	require.Equal(t, scene.Noon, a.ReceivedAt)
	require.Equal(t, Fingerprint(labels), a.Fingerprint, "the fingerprint is that of all labels")

	labels["severity"] = strings.Repeat("ü", 500)
	a = c.NewAlert(p, labels, StatusFiring, scene.Noon, scene.Noon)
	require.LessOrEqual(t, len(a.Labels["severity"]), MaxAlertLabelBytes)
	_, err := DecodeAlert(a.Key(), a.Encode())
	require.NoError(t, err)
}

// full returns a Node's annotations with n alerts. The oldest of them are resolved: their number is
// the second argument.
func full(n, resolved int) map[string]string {
	on := map[string]string{}
	for i := range n {
		a := Alert{V: 1, Name: "A", Policy: "p", Status: StatusFiring, StartsAt: scene.Noon.Add(time.Duration(i) * time.Second), ReceivedAt: scene.Noon, Fingerprint: fmt.Sprintf("%016x", i)}
		if i < resolved {
			a.Status = StatusResolved
		}
		on[a.Key()] = a.Encode()
	}
	return on
}

func TestAdmitMakesRoomByDroppingTheOldestResolved(t *testing.T) {
	one := Alert{V: 1, Name: "A", Policy: "p", Status: StatusFiring, StartsAt: scene.Noon, ReceivedAt: scene.Noon, Fingerprint: "ffffffffffffffff"}

	drop, ok := Admit(full(63, 63), one)
	require.True(t, ok)
	require.Empty(t, drop, "the 64th fits")

	drop, ok = Admit(full(64, 2), one)
	require.True(t, ok)
	require.Equal(t, []string{AlertPrefix + "0000000000000000"}, drop)

	_, ok = Admit(full(64, 0), one)
	require.False(t, ok, "a firing one is never dropped for another")

	again := one
	again.Fingerprint = "0000000000000000"
	drop, ok = Admit(full(64, 0), again)
	require.True(t, ok, "one that is there already takes no more room")
	require.Empty(t, drop)
}

// TestAdmitKeepsTheNodeBounded: for any Node, Admit keeps the alerts within both bounds.
func TestAdmitKeepsTheNodeBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		on := map[string]string{
			HistoryKey:    strings.Repeat("h", rapid.IntRange(0, MaxHistoryBytes+MaxObservedBytes).Draw(t, "history")),
			NodeRepairKey: strings.Repeat("r", rapid.IntRange(0, MaxRecordBytes).Draw(t, "record")), "other/key": strings.Repeat("x", 99999),
		}
		size := rapid.IntRange(1, 3000).Draw(t, "size")
		firing := 0
		for i := range rapid.IntRange(0, 70).Draw(t, "alerts") {
			a := Alert{V: 1, Name: strings.Repeat("a", size), Policy: "p", Status: StatusFiring, StartsAt: scene.Noon.Add(time.Duration(i)), Fingerprint: fmt.Sprintf("%016x", i)}
			if rapid.Bool().Draw(t, "resolved") {
				a.Status = StatusResolved
			} else {
				firing++
			}
			on[a.Key()] = a.Encode()
		}
		one := Alert{V: 1, Name: strings.Repeat("n", size), Policy: "p", Status: StatusFiring, Fingerprint: "ffffffffffffffff"}
		drop, ok := Admit(on, one)
		if !ok {
			require.Empty(t, drop)
			return
		}
		for _, k := range drop {
			a, err := DecodeAlert(k, on[k])
			require.NoError(t, err)
			require.Equal(t, StatusResolved, a.Status)
			delete(on, k)
		}
		on[one.Key()] = one.Encode()
		count, bytes := 0, 0
		for k, v := range on {
			if strings.HasPrefix(k, AlertPrefix) {
				count++
			}
			if Relevant(k) {
				bytes += len(k) + len(v)
			}
		}
		require.LessOrEqual(t, count, MaxAlertsPerNode)
		require.LessOrEqual(t, bytes, MaxBytesPerNode)
	})
}

// TestFingerprintIsAlertmanagersOwn compares Fingerprint with Alertmanager's library, for any
// labels.
func TestFingerprintIsAlertmanagersOwn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		labels := rapid.MapOfN(rapid.StringN(0, 8, 12), rapid.String(), 0, 40).Draw(t, "labels")
		theirs := model.LabelSet{}
		for k, v := range labels {
			theirs[model.LabelName(k)] = model.LabelValue(v)
		}
		require.Equal(t, theirs.Fingerprint().String(), Fingerprint(labels))
	})
}

// TestAlertsAreEncodedWhateverTheirTimes: startsAt comes from outside, and RFC 3339 allows times
// that JSON cannot hold in UTC. Such an alert must not crash the leader.
func TestAlertsAreEncodedWhateverTheirTimes(t *testing.T) {
	c, p := &Config{}, &Policy{Name: "p", Labels: []string{"node"}}
	again := func(t require.TestingT, startsAt time.Time) Alert {
		a := c.NewAlert(p, map[string]string{"alertname": "A", "node": "n1"}, StatusFiring, startsAt, scene.Noon)
		read, err := DecodeAlert(a.Key(), a.Encode())
		require.NoError(t, err)
		require.True(t, a.Same(read))
		require.True(t, a.Reads(read.Encode()))
		return read
	}
	for text, want := range map[string]string{
		"0000-01-01T00:00:00+14:00":      "0001-01-01T00:00:00Z",
		"9999-12-31T23:59:59-14:00":      "9999-12-31T23:59:59Z",
		"9999-12-31T23:59:59.999999999Z": "9999-12-31T23:59:59.999999999Z",
		"2026-11-20T20:55:00.123+01:00":  "2026-11-20T19:55:00.123Z",
	} {
		at, err := time.Parse(time.RFC3339, text)
		require.NoError(t, err)
		require.Equal(t, want, again(t, at).StartsAt.Format(time.RFC3339Nano), text)
	}
	rapid.Check(t, func(t *rapid.T) {
		zone := time.FixedZone("", rapid.IntRange(-24*3600, 24*3600).Draw(t, "zone"))
		again(t, time.Unix(rapid.Int64().Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).In(zone))
	})
	for _, odd := range []string{"0000-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"} {
		for _, text := range []string{
			`{"v":1,"alertname":"A","policy":"p","status":"firing","startsAt":"` + odd + `","receivedAt":"2026-01-01T00:00:00Z","labels":{}}`,
			`{"v":1,"alertname":"A","policy":"p","status":"firing","startsAt":"2026-01-01T00:00:00Z","receivedAt":"` + odd + `","labels":{}}`,
		} {
			_, err := DecodeAlert(AlertPrefix+scene.FP, text)
			require.ErrorContains(t, err, "not an alert of version", "Drydock writes no such time, and what it reads may end up in a record")
		}
	}
}
