package http

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/engine"
)

// schema reads one of the schemas that docs/providers/http.md names.
func schema(t testing.TB, name string) (*jsonschema.Schema, map[string]any) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/" + name)
	require.NoError(t, err)
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource(name, tree))
	s, err := c.Compile(name)
	require.NoError(t, err)
	return s, tree.(map[string]any)
}

func valid(t testing.TB, s *jsonschema.Schema, document []byte) error {
	t.Helper()
	tree, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	require.NoError(t, err)
	return s.Validate(tree)
}

// keys returns the JSON keys of a struct, with those of its embedded structs.
func keys(of reflect.Type) (out []string) {
	for i := range of.NumField() {
		if f := of.Field(i); f.Anonymous {
			out = append(out, keys(f.Type)...)
		} else {
			key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			out = append(out, key)
		}
	}
	return out
}

// TestTheSchemasHaveTheKeysOfTheDocuments, and no others.
func TestTheSchemasHaveTheKeysOfTheDocuments(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]any{"http-request.schema.json": document{}, "http-observation.schema.json": observation{}} {
		_, tree := schema(t, name)
		var has []string
		for key := range tree["properties"].(map[string]any) {
			has = append(has, key)
		}
		require.ElementsMatch(t, keys(reflect.TypeOf(of)), has, name)
	}
}

// whole is a machine with all data.
func whole() engine.Machine {
	m := machine1
	m.Soft, m.Policy, m.Deadline = true, "node-not-ready", time.Date(2026, 3, 4, 13, 0, 0, 5, time.FixedZone("", 3600))
	m.Alert = &remediations.Alert{Name: "NodeNotReady", Labels: map[string]string{"node": "node-1", "severity": "critical"}}
	return m
}

// TestTheRequestsFollowTheirSchema: the receiver's document for each action, with all data and
// with as little as a Node may show.
func TestTheRequestsFollowTheirSchema(t *testing.T) {
	t.Parallel()
	s, _ := schema(t, "http-request.schema.json")
	for name, m := range map[string]engine.Machine{
		"whole": whole(),
		"bare":  {Node: "node-1", UID: "u-1", ProviderID: "rack://1", Attempt: "abcdef-0-1", Policy: "remediation/reboot", Deadline: time.Now()},
	} {
		r, c := receiving(t)
		for _, a := range []engine.Actuator{Action{c, "reboot"}, NewReplacer(c)} {
			m.Before = a.(engine.Surveyor).Survey(t.Context(), m).Before
			_, err := a.Act(t.Context(), m, func() error { return nil })
			require.True(t, err == nil || strings.Contains(err.Error(), "taken already"), "%v", err)
		}
		require.Len(t, r.got(), 6)
		for _, got := range r.got() {
			require.NoError(t, valid(t, s, got.body), "%s: %s", name, got.body)
		}
	}
	for _, broken := range []string{`{}`, `{"version":"1","action":"reboot","node":"n","uid":"u","providerID":"","systemUUID":"","bootID":""}`} {
		require.Error(t, valid(t, s, []byte(broken)), "the control: the schema refuses %s", broken)
	}
}

// TestTheWholeRequest is the request in docs/providers/http.md.
func TestTheWholeRequest(t *testing.T) {
	t.Parallel()
	r, c := receiving(t)
	_, err := Action{c, "reboot"}.Act(t.Context(), whole(), func() error { return nil })
	require.NoError(t, err)
	want := `{"version":"1","action":"reboot","node":"node-1","uid":"u-1","providerID":"rack://1","systemUUID":"4c4c4544-0042-3510-8054-b7c04f4d3332",
		"bootID":"b-1","attempt":"abcdef-0-1","soft":true,"policy":"node-not-ready",
		"alert":{"name":"NodeNotReady","labels":{"node":"node-1","severity":"critical"}},"deadline":"2026-03-04T12:00:00Z"}`
	require.JSONEq(t, want, string(r.got()[1].body))
	page, err := os.ReadFile("../../../docs/providers/http.md")
	require.NoError(t, err)
	_, shown, _ := strings.Cut(string(page), "```json\n")
	shown, _, _ = strings.Cut(shown, "```")
	var asShown, asSent map[string]any
	require.NoError(t, json.Unmarshal([]byte(shown), &asShown))
	require.NoError(t, json.Unmarshal([]byte(want), &asSent))
	delete(asSent, "soft")
	require.ElementsMatch(t, slices.Collect(maps.Keys(asSent)), slices.Collect(maps.Keys(asShown)), "docs/providers/http.md shows the keys")
}

// observations are answers to a question about u-1: good ones, and those that Drydock must refuse.
var observations = map[string]bool{
	`{"uid":"u-1","can":[],"machine":"off"}`: true,
	`{"uid":"u-1","can":["reboot","dance"],"machine":"running","message":"m","successors":null,"job":null,"further":1}`:         true,
	`{"uid":"u-1","can":[],"machine":"gone","successors":["a","b"],"job":{"attempt":"a","state":"failed","message":"no disk"}}`: true,
	`{"uid":"u-1","machine":"off"}`:                                 false,
	`{"uid":"u-1","can":null,"machine":"off"}`:                      false,
	`{"uid":"u-1","can":"reboot","machine":"off"}`:                  false,
	`{"uid":"u-1","can":["reboot"]}`:                                false,
	`{"uid":"u-1","can":["reboot"],"machine":"on"}`:                 false,
	`{"uid":"u-1","can":["reboot"],"machine":"running","job":{}}`:   false,
	`{"uid":"u-1","can":["reboot"],"machine":"running","job":true}`: false,
	`{"uid":1,"can":["reboot"],"machine":"running"}`:                false,
	`{"can":["reboot"],"machine":"running"}`:                        false,
	`{}`:                                                            false,
}

// TestAnObservationIsReadByItsSchema, and an observation about another machine is refused.
func TestAnObservationIsReadByItsSchema(t *testing.T) {
	t.Parallel()
	s, _ := schema(t, "http-observation.schema.json")
	for text, good := range observations {
		_, err := parse([]byte(text), "u-1")
		require.Equal(t, good, err == nil, "%s: %v", text, err)
		require.Equal(t, good, valid(t, s, []byte(text)) == nil, text)
		_, err = parse([]byte(text), "u-2")
		require.Error(t, err, "%s is about another machine", text)
	}
}

// FuzzObservation: any answer of a receiver is refused or conforms to the schema; no part of a
// refused answer is used.
func FuzzObservation(f *testing.F) {
	for text := range observations {
		f.Add([]byte(text))
	}
	s, _ := schema(f, "http-observation.schema.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		o, err := parse(text, "u-1")
		if err != nil {
			return
		}
		require.Equal(t, "u-1", o.UID)
		again, err := json.Marshal(o) // keys in another letter case are read, too
		require.NoError(t, err)
		require.NoError(t, valid(t, s, again))
	})
}
