package history

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	shipped "drydock.dev/drydock/rules"
)

// RuleFile is a rule file of Prometheus.
type RuleFile struct {
	Name string
	Text []byte
}

func shippedRules() ([]RuleFile, error) {
	names, err := shipped.Names()
	if err != nil {
		return nil, err
	}
	var out []RuleFile
	for _, name := range names {
		text, err := shipped.Read(name)
		if err != nil {
			return nil, err
		}
		out = append(out, RuleFile{Name: name, Text: text})
	}
	return out, nil
}

// ReadRules reads the rule files and PrometheusRule manifests (*.yaml, *.yml) in a folder without
// its subfolders, or one such file.
func ReadRules(path string) ([]RuleFile, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading the rules: %w", err)
	}
	paths := []string{path}
	if info.IsDir() {
		paths = nil
		for _, pattern := range []string{"*.yaml", "*.yml"} {
			found, err := filepath.Glob(filepath.Join(path, pattern))
			if err != nil {
				return nil, fmt.Errorf("reading the rules: %w", err)
			}
			paths = append(paths, found...)
		}
		slices.Sort(paths)
	}
	var out []RuleFile
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading the rules: %w", err)
		}
		if text, err = plainRules(text); err != nil {
			return nil, fmt.Errorf("reading the rules of %s: %w", path, err)
		}
		out = append(out, RuleFile{Name: filepath.Base(path), Text: text})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("reading the rules: %s has no file *.yaml or *.yml", path)
	}
	return out, nil
}

// Text that is not a PrometheusRule manifest stays unchanged, so that errors of Prometheus' parser
// have the correct line numbers.
func plainRules(text []byte) ([]byte, error) {
	var groups []any
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var manifest struct {
			Kind string
			Spec struct{ Groups []map[string]any }
		}
		err := decoder.Decode(&manifest)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		switch manifest.Kind {
		case "":
			return text, nil
		case "PrometheusRule":
			for _, group := range manifest.Spec.Groups {
				delete(group, "partial_response_strategy") // a field of Thanos, which Prometheus refuses
				groups = append(groups, group)
			}
		default:
			return nil, fmt.Errorf("a %s is neither a rule file nor a PrometheusRule", manifest.Kind)
		}
	}
	return yaml.Marshal(map[string]any{"groups": groups})
}
