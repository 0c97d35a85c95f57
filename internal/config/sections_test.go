package config

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// A section that its struct declares reads each key of its schema, and no other.
func TestEachKeyOfADeclaredSectionHasItsField(t *testing.T) {
	t.Parallel()
	declared := 0
	for _, s := range sections {
		b := &builder{document: parse("", []byte("{}"), "")}
		p := s.Read(b, pointer{"providers", s.Key}, json.RawMessage("{}"))
		if p == nil || reflect.TypeOf(p).Kind() != reflect.Pointer {
			continue
		}
		fields := map[string]bool{}
		for i := range reflect.TypeOf(p).Elem().NumField() {
			if key := reflect.TypeOf(p).Elem().Field(i).Tag.Get("json"); key != "" {
				fields[key] = true
			}
		}
		if len(fields) == 0 {
			continue // it has a function of its own
		}
		declared++
		var schema struct{ Properties map[string]any }
		require.NoError(t, json.Unmarshal([]byte(s.Schema), &schema))
		for key := range schema.Properties {
			require.True(t, fields[key], "providers.%s: no field reads the key %s", s.Key, key)
			delete(fields, key)
		}
		require.Empty(t, fields, "providers.%s: the schema lacks keys that fields read", s.Key)
	}
	require.GreaterOrEqual(t, declared, 8)
}
