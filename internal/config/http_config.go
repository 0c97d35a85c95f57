package config

import (
	"cmp"
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	promconfig "github.com/prometheus/common/config"
	"go.yaml.in/yaml/v3"
)

// HTTPConfig reads HTTP settings with the strict decoder of Prometheus' http_config.
func (b *builder) HTTPConfig(p pointer, tree map[string]any) promconfig.HTTPClientConfig {
	if b.Faulty(p) {
		return promconfig.DefaultHTTPClientConfig
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		b.Fault(p, "cannot be read: %v", err)
		return promconfig.DefaultHTTPClientConfig
	}
	out, err := promconfig.LoadHTTPConfig(string(text))
	if err != nil {
		b.httpFaults(p, string(text), err)
		return promconfig.DefaultHTTPClientConfig
	}
	out.SetDirectory(b.dir)
	if !b.skipFiles {
		b.httpFiles(p, tree)
	}
	return *out
}

var (
	decoderLine  = regexp.MustCompile(`^\s*line ([0-9]+): (.*)$`)
	unknownField = regexp.MustCompile(`^field (.+) not found in type `)
	wrongType    = regexp.MustCompile("(?s)^cannot unmarshal (!![a-z]+)(?: `.*`)? into ")
)

func (b *builder) httpFaults(p pointer, text string, err error) {
	var parsed yaml.Node
	located := false
	if yaml.Unmarshal([]byte(text), &parsed) == nil && len(parsed.Content) > 0 {
		for line := range strings.Lines(err.Error()) {
			m := decoderLine.FindStringSubmatch(strings.TrimRight(line, "\n"))
			if m == nil {
				continue
			}
			n, _ := strconv.Atoi(m[1])
			b.Fault(p.To(onLine(parsed.Content[0], n)...), "%s", decoderSays(m[2]))
			located = true
		}
	}
	if !located {
		b.httpFault(p, err)
	}
}

// decoderSays does not quote the value in the message, because the value may be a secret.
func decoderSays(message string) string {
	if unknownField.MatchString(message) {
		return "unknown key; the known keys are those of Prometheus' http_config"
	}
	if m := wrongType.FindStringSubmatch(message); m != nil {
		have := map[string]string{"!!str": "text", "!!map": "a mapping", "!!seq": "a list", "!!int": "a number", "!!float": "a number", "!!bool": "true or false", "!!null": "no value"}[m[1]]
		return "has " + cmp.Or(have, "a value") + ", but Prometheus' http_config requires another type here"
	}
	return "cannot be read; see Prometheus' http_config"
}

// httpFault leaves out quoted values, which may be secrets: Prometheus' own messages are fixed
// texts, and only parsers quote values.
func (b *builder) httpFault(p pointer, err error) {
	var parser *url.Error
	message, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), ": ") // a value follows the colon
	if errors.As(err, &parser) || strings.ContainsAny(message, "\"'`@") && !strings.HasSuffix(message, `use "basic_auth" instead`) {
		b.Fault(p, "is not a valid http_config of Prometheus: a value cannot be read, for example a proxy_url that is not a URL; in a password, write %%25 for %%, and %%20 for a space")
		return
	}
	b.Fault(p, "is not a valid http_config of Prometheus: %s", message)
}

func onLine(n *yaml.Node, line int) []any {
	switch n.Kind { //nolint:exhaustive // the others have no keys
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			last := i+3 >= len(n.Content)
			if n.Content[i].Line <= line && (last || n.Content[i+2].Line > line) {
				return append([]any{n.Content[i].Value}, onLine(n.Content[i+1], line)...)
			}
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			if last := i+1 >= len(n.Content); item.Line <= line && (last || n.Content[i+1].Line > line) {
				return append([]any{i}, onLine(item, line)...)
			}
		}
	}
	return nil
}

// httpFiles relies on Prometheus' convention: the keys of file names end in _file.
func (b *builder) httpFiles(p pointer, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			if name, ok := value.(string); ok && strings.HasSuffix(key, "_file") {
				b.file(p.To(key), promconfig.JoinDir(b.dir, name))
				continue
			}
			b.httpFiles(p.To(key), value)
		}
	case []any:
		for i, value := range v {
			b.httpFiles(p.To(i), value)
		}
	}
}
