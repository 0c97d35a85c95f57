// Package dashboard tests Grafana's dashboard. Each of its queries is run against the lab's
// Prometheus, which scrapes a real Drydock that has repaired a node, and must return data.
package dashboard

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/lab"
)

type target struct {
	RefID, Expr    string
	Instant, Range bool
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Targets                  []target
	Collapsed                bool
	Panels                   []panel
}

type dashboard struct {
	UID           string
	SchemaVersion int
	Templating    struct {
		List []struct{ Name, Type, AllValue string }
	}
	Links []struct {
		Title, URL  string
		TargetBlank bool
	}
	Annotations struct {
		List []struct {
			Name, Expr, TitleFormat, TextFormat string
			Enable                              bool
		}
	}
	Panels []panel
}

var file = filepath.Join("..", "..", "charts", "drydock", "dashboards", "drydock.json")

func read(t *testing.T) (d dashboard, text []byte) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &d))
	return d, text
}

// all returns all panels, including those of folded rows.
func (d dashboard) all() (out []panel) {
	for _, p := range d.Panels {
		out = append(append(out, p), p.Panels...)
	}
	return out
}

func TestPanelsHaveTheirPlaceAndTheirName(t *testing.T) {
	d, _ := read(t)
	require.GreaterOrEqual(t, d.SchemaVersion, 39)
	ids := map[int]string{}
	taken := map[[2]int]string{}
	for _, p := range d.all() {
		require.NotEmpty(t, p.Title, "panel %d", p.ID)
		require.Positive(t, p.ID, p.Title)
		require.NotContains(t, ids, p.ID, "%s and %s have one id", p.Title, ids[p.ID])
		ids[p.ID] = p.Title
		g := p.GridPos
		require.True(t, g.X >= 0 && g.Y >= 0 && g.W > 0 && g.H > 0 && g.X+g.W <= 24, "%s is at %+v", p.Title, g)
		for x := g.X; x < g.X+g.W; x++ {
			for y := g.Y; y < g.Y+g.H; y++ {
				at := [2]int{x, y}
				require.NotContains(t, taken, at, "%s lies on %s", p.Title, taken[at])
				taken[at] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		require.NotEmpty(t, p.Description, "%s must say what it shows", p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
		refs := map[string]bool{}
		for _, q := range p.Targets {
			require.False(t, refs[q.RefID], "%s has two queries %s", p.Title, q.RefID)
			refs[q.RefID] = true
			require.NotEqual(t, q.Instant, q.Range, "%s: a query is of one kind", p.Title)
		}
	}
}

// TestNoDatasourceIsNamed: the user chooses the datasource.
func TestNoDatasourceIsNamed(t *testing.T) {
	d, text := read(t)
	kinds := map[string]string{}
	for _, v := range d.Templating.List {
		kinds[v.Name] = v.Type
	}
	require.Equal(t, map[string]string{"datasource": "datasource", "cluster": "query"}, kinds)
	var tree any
	require.NoError(t, json.Unmarshal(text, &tree))
	seen := 0
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			if source, ok := v["datasource"]; ok {
				require.Equal(t, map[string]any{"type": "prometheus", "uid": "${datasource}"}, source)
				seen++
			}
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(tree)
	require.Greater(t, seen, 40)
}

// TestARowThatIsEmptyInMostInstallsIsFolded: for example, the default installation has no webhook.
func TestARowThatIsEmptyInMostInstallsIsFolded(t *testing.T) {
	d, _ := read(t)
	for _, p := range d.Panels {
		admission := strings.HasPrefix(p.Title, "Admission")
		require.Equal(t, admission, p.Collapsed, p.Title)
		require.Equal(t, admission, len(p.Panels) > 0, "%s: Grafana shows the panels of a folded row only where the row has them", p.Title)
		for _, q := range append(p.Targets, targetsOf(p.Panels)...) {
			require.Equal(t, admission, strings.Contains(q.Expr, "drydock_admission_") || strings.Contains(q.Expr, "drydock_webhook_"), "%s: %s", p.Title, q.Expr)
		}
	}
}

func targetsOf(panels []panel) (out []target) {
	for _, p := range panels {
		out = append(out, p.Targets...)
	}
	return out
}

// TestLinksLeadToPagesThatExist and open in a new tab.
func TestLinksLeadToPagesThatExist(t *testing.T) {
	d, _ := read(t)
	var to []string
	for _, l := range d.Links {
		_, name, ok := strings.Cut(l.URL, "https://github.com/drydock-dev/drydock/")
		require.True(t, ok, l.URL)
		name = strings.TrimPrefix(strings.TrimPrefix(name, "blob/main/"), "tree/main/")
		_, err := os.Stat(filepath.Join("..", "..", name))
		require.NoError(t, err, l.Title)
		require.True(t, l.TargetBlank, l.Title)
		to = append(to, name)
	}
	require.Equal(t, []string{"docs/operate/troubleshooting.md", "rules/runbooks", "docs/metrics.md"}, to)
}

// TestEndsOfRepairsAndBlindnessAreAnnotated in all panels.
func TestEndsOfRepairsAndBlindnessAreAnnotated(t *testing.T) {
	d, _ := read(t)
	for i, of := range []string{"drydock_repairs_total{", "drydock_blind{"} {
		a := d.Annotations.List[i]
		require.True(t, a.Enable, a.Name)
		require.Contains(t, a.Expr, of)
		require.Contains(t, a.Expr, `{cluster=~"$cluster"}`)
		for _, label := range regexp.MustCompile(`{{(\w+)}}`).FindAllStringSubmatch(a.TitleFormat+a.TextFormat, -1) {
			require.Regexp(t, `by \([a-z, ]*\b`+label[1]+`\b`, a.Expr, "%s: the query has the label", a.Name)
		}
	}
	require.Contains(t, d.Annotations.List[1].Expr, "max by", "a gauge of the leader's")
}

// fleet are the gauges that only the leader has. After a change of leader, Prometheus still returns
// the old leader's gauges for some time.
var fleet = regexp.MustCompile(`drydock_(repairs|holds|breaker_state|blind|leader|selftest_state|selftest_last_arrival_timestamp_seconds|alertmanager_up)\{`)

var (
	selector  = regexp.MustCompile(`\b((?:drydock|kube|process)_[a-z_]+)(\{[^}]*\})?`)
	maxBefore = regexp.MustCompile(`max( by \([a-z, ]+\))? \($`)
)

func TestQueriesKeepToOneClusterAndToTheLeader(t *testing.T) {
	d, _ := read(t)
	for _, p := range d.all() {
		for _, q := range p.Targets {
			found := selector.FindAllStringSubmatch(q.Expr, -1)
			require.NotEmpty(t, found, "%s: %s", p.Title, q.Expr)
			for _, s := range found {
				require.Contains(t, s[2], `cluster=~"$cluster"`, "%s: %s", p.Title, s[1])
			}
			for _, at := range fleet.FindAllStringIndex(q.Expr, -1) {
				before := strings.TrimSuffix(q.Expr[:at[0]], "(") + " ("
				require.Regexp(t, maxBefore, strings.ReplaceAll(before, "  (", " ("), "%s: a gauge of the leader's", p.Title)
			}
		}
	}
}

func TestTheChartShipsItAsItIs(t *testing.T) {
	manifests, err := lab.RenderChart("drydock", "drydock", map[string]any{"grafanaDashboard": map[string]any{"enabled": true}})
	require.NoError(t, err)
	var m corev1.ConfigMap
	require.NoError(t, yaml.Unmarshal([]byte(manifests["drydock/templates/dashboard.yaml"]), &m))
	require.Equal(t, "1", m.Labels["grafana_dashboard"], "by this label Grafana's sidecar finds it")
	_, text := read(t)
	require.Equal(t, map[string]string{"drydock.json": string(text)}, m.Data)

	manifests, err = lab.RenderChart("drydock", "drydock", nil)
	require.NoError(t, err)
	require.NotContains(t, manifests, "drydock/templates/dashboard.yaml")
}
