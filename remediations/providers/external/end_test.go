package external

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

// record is that of a repair whose attempt abcdef-0-1 was made.
func record(phase remediations.Phase) string {
	now := time.Now().UTC().Format(time.RFC3339)
	return fmt.Sprintf(`{"v":1,"id":"abcdef","policy":"p","cause":{"alert":"9f2c0e5b6d1a4c33"},"phase":%q,"step":{"index":0,"name":"external","attempt":1},"done":["external:1"],"began":%[2]q,"since":%[2]q,"deadline":%[2]q,"intent":{"id":"abcdef-0-1","at":%[2]q,"outcome":"accepted"}}`, phase, now)
}

func history(outcome remediations.Outcome) string {
	return fmt.Sprintf(`[{"id":"abcdef","policy":"p","outcome":%q,"steps":["external:1"],"began":"2026-01-01T00:00:00Z","ended":"2026-01-01T00:01:00Z","why":"x"}]`, outcome)
}

// TestAnEndedRepairDeletesItsObject: the object of an attempt that is under way stays. If the
// attempt has ended, the object goes at once if its repair has ended well or its remediator has
// nothing more to do. Else its remediator first gets the annotation that it timed out, and has a
// minute.
func TestAnEndedRepairDeletesItsObject(t *testing.T) {
	const gone, annotated, stays = "gone", "annotated", "stays"
	now := time.Now().Truncate(time.Second)
	says := func(processing, succeeded string) m {
		one := func(kind, status string) m {
			return m{"type": kind, "status": status, "reason": "Lab", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
		}
		return m{"conditions": []any{one("Processing", processing), one("Succeeded", succeeded)}}
	}
	working := says("True", "Unknown")
	for name, tc := range map[string]struct {
		attempt     string // empty: that of the record
		on          m      // the Node's annotations
		status      m
		annotatedAt time.Time
		node        bool // it is gone
		want        string
	}{
		"acting":                            {on: m{"repair.drydock.dev/node": record(remediations.PhaseActing)}, status: working, want: stays},
		"verifying":                         {on: m{"repair.drydock.dev/node": record(remediations.PhaseVerifying)}, status: says("False", "True"), want: stays},
		"a record that nobody can read":     {on: m{"repair.drydock.dev/node": "{"}, status: working, want: stays},
		"cured":                             {on: m{"drydock.dev/history": history(remediations.OutcomeRecovered)}, status: working, want: gone},
		"well by itself":                    {on: m{"drydock.dev/history": history(remediations.OutcomeSelfRecovered)}, status: working, want: gone},
		"not cured":                         {on: m{"drydock.dev/history": history(remediations.OutcomeExhausted)}, status: working, want: annotated},
		"between attempts":                  {on: m{"repair.drydock.dev/node": record(remediations.PhasePending)}, status: working, want: annotated},
		"exhausted":                         {on: m{"repair.drydock.dev/node": record(remediations.PhaseExhausted)}, status: working, want: annotated},
		"another attempt is under way":      {attempt: "abcdef-0-0", on: m{"repair.drydock.dev/node": record(remediations.PhaseVerifying)}, status: working, want: annotated},
		"another repair was cured":          {attempt: "abcdefg-0-1", on: m{"drydock.dev/history": history(remediations.OutcomeRecovered)}, status: working, want: annotated},
		"not cured, but done":               {status: says("False", "True"), want: gone},
		"not cured, and given up":           {status: says("False", "False"), want: gone},
		"nobody has ever looked at it":      {want: gone},
		"annotated, and still at work":      {status: working, annotatedAt: now.Add(-50 * time.Second), want: annotated},
		"annotated, and its time has ended": {status: working, annotatedAt: now.Add(-time.Minute), want: gone},
		"its Node is gone":                  {status: working, node: true, want: annotated},
		"Metal3's phase, without a word":    {status: m{"phase": "Running"}, want: annotated},
		"somebody else's, of that manner":   {attempt: "-", status: working, want: stays},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			notes := m{nodeKey: w.one.Node, attemptKey: "abcdef-0-1"}
			switch tc.attempt {
			case "":
			case "-":
				delete(notes, attemptKey)
			default:
				notes[attemptKey] = tc.attempt
			}
			if !tc.annotatedAt.IsZero() {
				notes[timedOutKey] = tc.annotatedAt.UTC().Format(time.RFC3339)
			}
			w.Create("SelfNodeRemediation", w.one.Node, m{"labels": m{madeLabel: madeBy}, "annotations": notes}, m{}, nil)
			if tc.status != nil {
				w.Patch("SelfNodeRemediation", w.one.Node, m{"status": tc.status}, "status")
			}
			if tc.on != nil {
				w.PatchNode(w.one.Node, m{"metadata": m{"annotations": tc.on}})
			}
			if tc.node {
				w.DropNode(w.one.Node)
			}
			e := Ender{w.remediator(func(o *Options) {
				o.Now, o.Templates = func() time.Time { return now }, []remediations.Template{w.one.Template, w.one.Template}
			}).Client, nil}

			require.NoError(t, e.End(t.Context()))

			left := w.Get("SelfNodeRemediation", w.one.Node)
			switch {
			case tc.want == gone:
				require.Nil(t, left)
			case tc.want == stays:
				require.NotContains(t, left.GetAnnotations(), timedOutKey)
			case tc.annotatedAt.IsZero():
				require.Equal(t, now.UTC().Format(time.RFC3339), left.GetAnnotations()[timedOutKey])
			default:
				require.Equal(t, notes[timedOutKey], left.GetAnnotations()[timedOutKey], "it is told once")
			}
		})
	}
}

// TestARemediatorThatIsNotThereIsNamed, and does not prevent the end of the others.
func TestARemediatorThatIsNotThereIsNamed(t *testing.T) {
	w := newWorld(t)
	w.Create("SelfNodeRemediation", w.one.Node, m{"labels": m{madeLabel: madeBy}, "annotations": m{attemptKey: "abcdef-0-1"}}, m{}, nil)
	unserved := w.one.Template
	unserved.APIVersion = "nobody.example/v1"
	r := w.remediator(func(o *Options) { o.Templates = []remediations.Template{unserved, w.one.Template} })
	err := Ender{r.Client, nil}.End(t.Context())
	require.ErrorContains(t, err, "does not serve nobody.example/v1")
	require.Nil(t, w.Get("SelfNodeRemediation", w.one.Node))
}
