package deploy_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// alertmanagerConfig has the parts of the operator's object that become routes and inhibitions. Of
// receivers it has only the names.
type alertmanagerConfig struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct {
		Name, Namespace string
		Labels          map[string]string
	}
	Spec struct {
		Route        route
		InhibitRules []struct {
			SourceMatch []matcher `yaml:"sourceMatch"`
			TargetMatch []matcher `yaml:"targetMatch"`
			Equal       []string
		} `yaml:"inhibitRules"`
		Receivers []struct {
			Name           string
			WebhookConfigs []map[string]any `yaml:"webhookConfigs"`
		}
	}
}

type matcher struct{ Name, MatchType, Value string }

// UnmarshalYAML returns an error for a matcher without matchType.
func (m *matcher) UnmarshalYAML(n *yaml.Node) error {
	var raw map[string]string
	if err := n.Decode(&raw); err != nil {
		return err
	}
	*m = matcher{Name: raw["name"], MatchType: raw["matchType"], Value: raw["value"]}
	if len(raw) != 3 || m.Name == "" || m.MatchType == "" {
		return fmt.Errorf("a matcher has name, matchType and value, and this is %v", raw)
	}
	return nil
}

type route struct {
	Receiver       string
	Matchers       []matcher
	Continue       bool
	GroupBy        []string `yaml:"groupBy"`
	GroupWait      string   `yaml:"groupWait"`
	GroupInterval  string   `yaml:"groupInterval"`
	RepeatInterval string   `yaml:"repeatInterval"`
	Routes         []route
}

// readAlertmanagerConfig returns the only AlertmanagerConfig in a file.
func readAlertmanagerConfig(t *testing.T, file string) alertmanagerConfig {
	t.Helper()
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	return decodeAlertmanagerConfig(t, file, data)
}

func decodeAlertmanagerConfig(t *testing.T, file string, data []byte) alertmanagerConfig {
	t.Helper()
	docs := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := docs.Decode(&doc)
		require.NotErrorIs(t, err, io.EOF, "%s has no AlertmanagerConfig", file)
		require.NoError(t, err)
		var head struct{ Kind string }
		require.NoError(t, doc.Decode(&head))
		if head.Kind != "AlertmanagerConfig" {
			continue
		}
		text, err := yaml.Marshal(&doc)
		require.NoError(t, err)
		var c alertmanagerConfig
		strict := yaml.NewDecoder(bytes.NewReader(text))
		strict.KnownFields(true)
		require.NoError(t, strict.Decode(&c), "%s: what is not read here is not tested", file)
		return c
	}
}

// merged returns the configuration that the operator makes of the object and of Alertmanager's own
// configuration. The object's route is first, and passes every alert on. Its receivers get its
// namespace and name as a prefix. Unless byNamespace is off, its route and inhibitions match only
// alerts of its namespace.
func (c *alertmanagerConfig) merged(base map[string]any, byNamespace bool) map[string]any {
	prefix := c.Metadata.Namespace + "/" + c.Metadata.Name + "/"
	own := matcher{"namespace", "=", c.Metadata.Namespace}
	first := c.Spec.Route.convert(prefix)
	first["continue"] = true
	if byNamespace {
		first["matchers"] = append(first["matchers"].([]string), own.String())
	}
	var inhibitions []any
	for _, r := range c.Spec.InhibitRules {
		source, target := r.SourceMatch, r.TargetMatch
		if byNamespace {
			source, target = append(source, own), append(target, own)
		}
		inhibitions = append(inhibitions, map[string]any{"source_matchers": texts(source), "target_matchers": texts(target), "equal": r.Equal})
	}
	top := base["route"].(map[string]any)
	routes, _ := top["routes"].([]any)
	receivers := base["receivers"].([]any)
	for _, r := range c.Spec.Receivers {
		receivers = append(receivers, map[string]any{"name": prefix + r.Name})
	}
	out := map[string]any{"receivers": receivers, "inhibit_rules": inhibitions, "route": map[string]any{}}
	for k, v := range top {
		out["route"].(map[string]any)[k] = v
	}
	out["route"].(map[string]any)["routes"] = append([]any{first}, routes...)
	return out
}

func (r *route) convert(prefix string) map[string]any {
	var routes []any
	for _, child := range r.Routes {
		routes = append(routes, child.convert(prefix))
	}
	out := map[string]any{"receiver": prefix + r.Receiver, "matchers": texts(r.Matchers), "continue": r.Continue, "group_by": r.GroupBy, "routes": routes}
	for key, value := range map[string]string{"group_wait": r.GroupWait, "group_interval": r.GroupInterval, "repeat_interval": r.RepeatInterval} {
		if value != "" { // otherwise the parent's counts
			out[key] = value
		}
	}
	return out
}

func (m matcher) String() string { return fmt.Sprintf("%s%s%q", m.Name, m.MatchType, m.Value) }

func texts(all []matcher) []string {
	out := []string{}
	for _, m := range all {
		out = append(out, m.String())
	}
	return out
}
