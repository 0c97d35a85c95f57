package daemonsets

import (
	"fmt"
	"maps"
	"slices"
)

// differs returns the path of the first difference, or "" if live has everything that is in want.
// Additional fields in live are ignored, because they are defaults, or others have set them. An
// empty value equals a missing one.
func differs(path string, want, live any) string {
	switch w := want.(type) {
	case map[string]any:
		l, ok := live.(map[string]any)
		if !ok && len(w) > 0 && live != nil {
			return path
		}
		for _, key := range sortedKeys(w) {
			if at := differs(path+"."+key, w[key], l[key]); at != "" {
				return at
			}
		}
		return ""
	case []any:
		l, _ := live.([]any)
		if len(w) != len(l) {
			return path
		}
		for i := range w {
			if at := differs(fmt.Sprintf("%s[%d]", path, i), w[i], l[i]); at != "" {
				return at
			}
		}
		return ""
	}
	if want == live || nothing(want) && nothing(live) {
		return ""
	}
	return path
}

func nothing(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case string:
		return v == ""
	case int64:
		return v == 0
	case float64:
		return v == 0
	}
	return false
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
