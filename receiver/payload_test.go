package receiver

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
)

func decodeOne(t *testing.T, alert string) post {
	t.Helper()
	p, err := decode([]byte(postOf(alert)))
	require.NoError(t, err)
	return p
}

func labelled(labels string) string { return `{"status":"firing","labels":{` + labels + `}}` }

func started(at string) string {
	return `{"status":"firing","labels":{"node":"n1"},"startsAt":"` + at + `"}`
}

func many(n int) string {
	pairs := make([]string, n)
	for i := range pairs {
		pairs[i] = fmt.Sprintf(`"l%03d":"v"`, i)
	}
	return strings.Join(pairs, ",")
}

func TestAlertsAreJudgedOneByOne(t *testing.T) {
	p, err := decode([]byte(strings.Replace(postOf(
		fire("n1"), fire("n2"), alertJSON("resolved", "n1"), labelled(""), fire("n3"),
	), `"status":"firing","alerts"`, `"status":"resolved","alerts"`, 1)))
	require.NoError(t, err)
	require.Len(t, p.unusable, 1)
	var got []string
	for _, a := range p.alerts {
		got = append(got, a.Labels["node"]+" "+a.Status)
	}
	require.Equal(t, []string{"n1 resolved", "n2 firing", "n3 firing"}, got, "of one alert twice the last stands")
}

func TestDecodeReadsWhatAlertmanagerWrites(t *testing.T) {
	body, err := os.ReadFile("testdata/post.json")
	require.NoError(t, err)
	p, err := decode(body)
	require.NoError(t, err)
	require.Equal(t, "drydock", p.receiver)
	require.Len(t, p.alerts, 2)
	require.Len(t, p.alerts[0].Labels, 6)
	require.Equal(t, time.Date(2026, 11, 20, 20, 55, 0, 123e6, time.UTC), p.alerts[0].StartsAt)
	_, _, plain := scan(body)
	require.True(t, plain, "nothing that Alertmanager writes is odd")
}

func TestOneOddAlertIsUnusableAlone(t *testing.T) {
	name, value := strings.Repeat("n", maxNameBytes), strings.Repeat("v", maxValueBytes)
	cases := map[string]struct {
		alert string
		why   string // empty: usable
	}{
		"as many labels as allowed":  {labelled(many(maxLabels)), ""},
		"a label more":               {labelled(many(maxLabels + 1)), "65 labels, more than 64"},
		"the longest label":          {labelled(fmt.Sprintf("%q:%q", name, value)), ""},
		"a name too long":            {labelled(fmt.Sprintf(`%q:"v"`, name+"n")), "longer than 256 bytes"},
		"a value too long":           {labelled(fmt.Sprintf(`"n":%q`, value+"v")), "longer than 4096"},
		"labels beyond all measure":  {labelled(many(maxMapBytes / 8)), "take more than 65536 bytes"},
		"no labels":                  {labelled(""), "no labels"},
		"labels are null":            {`{"status":"firing","labels":null}`, "no labels"},
		"only an empty label":        {labelled(`"node":""`), "no labels"},
		"no status":                  {`{"labels":{"node":"n1"}}`, `status is ""`},
		"a status of its own":        {alertJSON("suppressed", "n1"), `status is "suppressed"`},
		"no times":                   {labelled(`"node":"n1"`), ""},
		"the last year in UTC":       {started("9999-12-31T23:59:59Z"), ""},
		"the first year in UTC":      {started("0001-01-01T00:00:00Z"), ""},
		"a begin after all years":    {started("9999-12-31T23:59:59-14:00"), "startsAt is in the year 10000"},
		"a begin before all years":   {started("0000-01-01T00:00:00+14:00"), "startsAt is in the year -1"},
		"bytes that are no UTF-8":    {labelled("\"node\":\"n\xff1\""), ""},
		"half a surrogate and a NUL": {labelled(`"node":"\ud800\u0000"`), ""},
	}
	for what, tc := range cases {
		t.Run(what, func(t *testing.T) {
			p := decodeOne(t, tc.alert)
			if tc.why != "" {
				require.Empty(t, p.alerts)
				require.Len(t, p.unusable, 1)
				require.Contains(t, p.unusable[0], tc.why)
				return
			}
			require.Empty(t, p.unusable)
			require.Len(t, p.alerts, 1)
			for _, v := range p.alerts[0].Labels {
				require.True(t, utf8.ValidString(v))
			}
		})
	}
}

func TestAnEmptyLabelIsNone(t *testing.T) {
	p := decodeOne(t, labelled(`"node":"n1","pod":""`))
	require.Equal(t, map[string]string{"node": "n1"}, p.alerts[0].Labels)
}

func TestIdentityDistinguishesLabels(t *testing.T) {
	require.Equal(t, identity(map[string]string{"a": "1", "b": "2"}), identity(map[string]string{"b": "2", "a": "1"}))
	require.NotEqual(t, identity(map[string]string{"a": "1b", "c": "2"}), identity(map[string]string{"a": "1", "bc": "2"}))
	require.NotEqual(t, identity(map[string]string{"a": "b"}), identity(map[string]string{"b": "a"}))
	require.NotEqual(t, identity(map[string]string{"a": "1", "b": "2"}), identity(map[string]string{"a": "2", "b": "1"}))
}

// TestAlertsOfOneHashStayApart: equal hashes are compared label by label.
func TestAlertsOfOneHashStayApart(t *testing.T) {
	wire, err := decodeAlerts([]byte("[" + fire("n1") + "," + fire("n2") + "," + fire("n3") + "," + alertJSON("resolved", "n2") + "]"))
	require.NoError(t, err)
	var p post
	p.take(wire, func(map[string]string) uint64 { return 7 })
	var got []string
	for _, a := range p.alerts {
		got = append(got, a.Labels["node"]+" "+a.Status)
	}
	require.Equal(t, []string{"n1 firing", "n2 resolved", "n3 firing"}, got)
}

func FuzzPayload(f *testing.F) {
	body, err := os.ReadFile("testdata/post.json")
	require.NoError(f, err)
	f.Add(body)
	for _, seed := range []string{
		postOf(), postOf(fire("n1"), alertJSON("resolved", "n1")), postOf(labelled(many(65))), postOf(labelled(`"node":"\ud800","":"x"`)),
		postOf("null"), `{"version":"4","alerts":[[]]}`, `{"version":"4","alerts":[{"labels":{},"labels":{"a":"b"},"status":"firing"}]}`,
		`{"VERSION":"4","alerts":[{"startsAt":"0000-01-01T00:00:00+23:59"}]}`, postOf(started("0000-01-01T00:00:00+23:59"), started("9999-12-31T23:59:59-23:59")), "\xff", "{", "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, err := decode(body)
		if err != nil {
			require.NotEmpty(t, err.Error())
			require.Empty(t, p.alerts)
			return
		}
		require.LessOrEqual(t, len(p.alerts)+len(p.unusable), maxAlerts)
		seen := map[string]bool{}
		for _, a := range p.alerts {
			require.Contains(t, []string{remediations.StatusFiring, remediations.StatusResolved}, a.Status)
			require.NotEmpty(t, a.Labels)
			require.LessOrEqual(t, len(a.Labels), maxLabels)
			_, err := a.StartsAt.MarshalJSON()
			require.NoError(t, err)
			for name, value := range a.Labels {
				require.LessOrEqual(t, len(name), maxNameBytes)
				require.NotEmpty(t, value)
				require.LessOrEqual(t, len(value), maxValueBytes)
				require.True(t, utf8.ValidString(name) && utf8.ValidString(value))
			}
			require.NotContains(t, seen, fmt.Sprint(a.Labels), "an alert twice")
			seen[fmt.Sprint(a.Labels)] = true
		}
	})
}
