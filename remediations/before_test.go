package remediations_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestARecordOfAnEarlierVersionKeepsWhatThereWasBefore: in an earlier version, the field Before had
// the form of one provider's instances. Such a record is still readable, that provider gets its
// facts unchanged, and Drydock writes them unchanged.
func TestARecordOfAnEarlierVersionKeepsWhatThereWasBefore(t *testing.T) {
	const kept = `{"instance":"i-1","hostname":"node-1","pool":"p-1","count":3,"newest":"2026-11-21T12:00:00Z"}`
	text := `{"v":1,"id":"abc234","policy":"p","cause":{"alert":"` + scene.FP + `"},"phase":"Verifying","step":{"index":0,"name":"replace","attempt":1},` +
		`"began":"2026-11-21T12:00:00Z","since":"2026-11-21T12:00:00Z","deadline":"2026-11-21T12:20:00Z",` +
		`"intent":{"id":"abc234-0-1","at":"2026-11-21T12:00:00Z","providerID":"civo://i-1","before":` + kept + `}}`
	r, err := DecodeRecord(text)
	require.NoError(t, err)
	require.JSONEq(t, kept, string(r.Intent.Before))
	require.Equal(t, text, r.Encode())
	require.Equal(t, text, r.Clone().Encode())
	var own struct {
		Instance, Hostname, Pool string
		Count                    int
		Newest                   time.Time
	}
	require.NoError(t, r.Intent.Before.Read(&own))
	require.Equal(t, "i-1", own.Instance)
	require.Equal(t, scene.Noon.Year(), own.Newest.Year())
}

// TestWhatAProviderKeepsIsOneBoundedObject: the field Before must be one JSON object that is not
// too long, also in a record that a person wrote on the Node.
func TestWhatAProviderKeepsIsOneBoundedObject(t *testing.T) {
	record := func(before string) string {
		return fmt.Sprintf(`{"v":1,"id":"abc234","policy":"p","cause":{"alert":"%s"},"phase":"Verifying","step":{"index":0,"name":"replace","attempt":1},"began":"2026-11-21T12:00:00Z","since":"2026-11-21T12:00:00Z","deadline":"2026-11-21T12:20:00Z","intent":{"id":"abc234-0-1","at":"2026-11-21T12:00:00Z","before":%s}}`, scene.FP, before)
	}
	for name, c := range map[string]struct {
		before, why string
	}{
		"an object of any shape":     {`{"machine":{"uid":"u-1","owner":["a","<b>"]}}`, ""},
		"one with room between":      {`{ "a" : 1 }`, ""},
		"nothing":                    {`null`, ""},
		"a text":                     {`"i-1"`, "not a JSON object"},
		"a list":                     {`["i-1"]`, "not a JSON object"},
		"as much as is kept":         {`{"a":"` + strings.Repeat("x", MaxBefore-8) + `"}`, ""},
		"more than is kept":          {`{"a":"` + strings.Repeat("x", MaxBefore-7) + `"}`, "at most 1024 can be recorded"},
		"what is no text anywhere":   {"{\"a\":\"\xff\"}", "not a JSON object"},
		"an object and a bit of one": {`{"a":1}{`, "not JSON"},
	} {
		r, err := DecodeRecord(record(c.before))
		if c.why != "" {
			require.ErrorContains(t, err, c.why, name)
			continue
		}
		require.NoError(t, err, name)
		again, err := DecodeRecord(r.Encode())
		require.NoError(t, err, name)
		require.Equal(t, r, again, name)
	}
}

// TestAProviderGetsBackWhatItKept: a provider reads the facts that it stored itself. It gets an
// error for the facts of another provider.
func TestAProviderGetsBackWhatItKept(t *testing.T) {
	type own struct {
		UID  string   `json:"uid"`
		List []string `json:"list,omitempty"`
	}
	s := Keeping(own{UID: "u-1<&>", List: []string{"a"}})
	require.Empty(t, s.Trouble)
	require.JSONEq(t, `{"uid":"u-1<&>","list":["a"]}`, string(s.Before))
	var got own
	require.NoError(t, s.Before.Read(&got))
	require.Equal(t, own{UID: "u-1<&>", List: []string{"a"}}, got)
	var others struct{ Instance string }
	require.ErrorContains(t, s.Before.Read(&others), "this provider cannot read the facts")
	require.ErrorContains(t, Before("").Read(&got), "has no facts from before the step")

	s = Keeping(own{UID: strings.Repeat("x", MaxBefore)})
	require.Empty(t, s.Before)
	require.Contains(t, s.Trouble, "at most 1024 can be recorded", "what a record cannot keep is told before anything is done")
	require.Equal(t, AskMended, s.Again)
	require.Contains(t, Keeping("no object").Trouble, "not a JSON object")
}
