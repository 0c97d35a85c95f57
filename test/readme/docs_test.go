package readme

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/ledger"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/selftest"
	"drydock.dev/drydock/test/admission/requests"
)

const (
	troubleshooting = "docs/operate/troubleshooting.md"
	holdReasons     = "docs/operate/hold-reasons.md"
	upgrade         = "docs/operate/upgrade-uninstall.md"
)

// pages returns all pages that people read.
func pages(t *testing.T) (out []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "rules/runbooks/*.md", "charts/drydock/README.md"} {
		files, err := filepath.Glob(filepath.Join(root(t), pattern))
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, f := range files {
			name, err := filepath.Rel(root(t), f)
			require.NoError(t, err)
			out = append(out, name)
		}
	}
	return out
}

var (
	fence    = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	code     = regexp.MustCompile("`[^`\n]*`")
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading  = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	notInURL = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors of the page's headings, as links use them.
func anchors(text string) (out []string) {
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		out = append(out, strings.ReplaceAll(notInURL.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
	}
	return out
}

func TestLinksLeadSomewhere(t *testing.T) {
	for _, name := range pages(t) {
		text := code.ReplaceAllString(fence.ReplaceAllString(page(t, name), ""), "")
		for _, l := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(l[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(l[1], "#")
			to := filepath.Join(filepath.Dir(name), file)
			if file == "" {
				to = name
			}
			_, err := os.Stat(filepath.Join(root(t), to))
			require.NoError(t, err, "%s links to %s", name, l[1])
			if anchor != "" {
				require.Contains(t, anchors(page(t, to)), anchor, "%s links to %s", name, l[1])
			}
		}
	}
}

// goldenMessages returns Drydock's messages by reason, from the core's golden files.
func goldenMessages(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			reason, _ := v["reason"].(string)
			message, _ := v["message"].(string)
			out[reason] = append(out[reason], message)
			for _, e := range v {
				walk(e)
			}
		}
	}
	var files []string
	for _, about := range []string{"targets/node/testdata/decide", "targets/sidecar/testdata/decide", "targets/location/testdata/decide", "rescue/apiserver/testdata/decide"} {
		found, err := filepath.Glob(filepath.Join(root(t), "remediations", about, "*.output.yaml"))
		require.NoError(t, err)
		require.NotEmpty(t, found)
		files = append(files, found...)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		var tree any
		require.NoError(t, yaml.Unmarshal(text, &tree), f)
		walk(tree)
	}
	return out
}

// TestEveryReasonIsExplainedInItsOwnWords: each reason has a chapter, with a message that Drydock
// really prints and with what to do. No chapter explains a reason that no longer exists.
func TestEveryReasonIsExplainedInItsOwnWords(t *testing.T) {
	messages := goldenMessages(t)
	var chapters []string
	for _, chapter := range strings.Split(page(t, holdReasons), "\n## ")[1:] {
		name, text, _ := strings.Cut(chapter, "\n")
		chapters = append(chapters, name)
		quoted, advice := 0, ""
		for paragraph := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
			if inner := strings.Trim(paragraph, "`"); len(inner) == len(paragraph)-2 {
				require.Contains(t, messages[name], inner, "%s never says that", name)
				quoted++
				continue
			}
			advice += paragraph
		}
		require.Positive(t, quoted, "%s is not quoted", name)
		require.NotEmpty(t, advice, "%s: what is to be done?", name)
	}
	var want []string
	for _, r := range remediations.Reasons {
		want = append(want, string(r))
	}
	require.Equal(t, want, chapters, "in the order of the guards")
}

// eventReasons returns the reasons of all Events that the code can send.
func eventReasons(t *testing.T) (out []string) {
	t.Helper()
	for _, o := range remediations.Outcomes {
		out = append(out, "Repair"+string(o))
	}
	for _, n := range []lifecycle.NoticeReason{lifecycle.AnnotationInvalid, lifecycle.RequestRefused, lifecycle.NodeUncordoned, lifecycle.NodeWellAgain, lifecycle.BreakGlassExpired} {
		out = append(out, string(n))
	}
	for _, dir := range []string{"cmd/drydock", "remediations", "receiver", "webhook"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root(t), dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				literal, ok := n.(*ast.CompositeLit)
				if !ok || !strings.HasSuffix(typeName(literal.Type), "Event") {
					return true
				}
				for _, e := range literal.Elts {
					pair, ok := e.(*ast.KeyValueExpr)
					if !ok || typeName(pair.Key) != "Reason" {
						continue
					}
					if value, ok := pair.Value.(*ast.BasicLit); ok {
						reason, _ := strconv.Unquote(value.Value)
						out = append(out, reason)
					}
				}
				return true
			})
			return nil
		}))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// firstCells returns the code spans in the first column of a chapter's table.
func firstCells(text string) (out []string) {
	for line := range strings.Lines(text) {
		if cells := strings.Split(line, "|"); len(cells) > 2 {
			for _, c := range code.FindAllString(cells[1], -1) {
				out = append(out, strings.Trim(c, "`"))
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestEveryEventIsExplained(t *testing.T) {
	require.Equal(t, eventReasons(t), firstCells(page(t, "docs/reference/events.md")))
}

func TestEveryStateOfTheSelfTestIsExplained(t *testing.T) {
	var want []string
	for _, s := range selftest.States {
		want = append(want, string(s))
	}
	slices.Sort(want)
	require.Equal(t, want, firstCells(section(t, troubleshooting, "Nothing happens. Is it connected?")))
}

// TestThePolicyToCopyIsTheShippedOne, except for its mode, after the chart and the program have
// read it.
func TestThePolicyToCopyIsTheShippedOne(t *testing.T) {
	var values m
	require.NoError(t, yaml.Unmarshal([]byte(blocks(section(t, "docs/install.md", enforceHeading), "yaml")[0]), &values))
	rendered, err := lab.RenderChart("drydock", "drydock", values)
	require.NoError(t, err)
	text, err := lab.RenderedConfig(rendered)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "drydock.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	c, _, err := config.Load(file, config.Options{SkipFiles: true})
	require.NoError(t, err)
	enforced := 0
	for _, p := range c.Policies {
		shipped := config.Shipped().Policies
		i := slices.IndexFunc(shipped, func(s config.PolicyInfo) bool { return s.Name == p.Name })
		require.GreaterOrEqual(t, i, 0)
		was := *shipped[i].Policy
		if p.Mode == remediations.ModeEnforce {
			enforced++
			was.Mode = remediations.ModeEnforce
		}
		require.Equal(t, &was, p.Policy)
	}
	require.Equal(t, 1, enforced)
}

// TestTheREADMEInstallsWhatItSays: the chart accepts the README's values, Drydock observes, and the
// pods run the image that was built.
func TestTheREADMEInstallsWhatItSays(t *testing.T) {
	typed := commands(t, "README.md", "Install in observe mode")
	i := slices.IndexFunc(typed, func(line string) bool { return strings.HasPrefix(line, "helm install drydock charts/drydock ") })
	require.GreaterOrEqual(t, i, 0)
	values := m{}
	for _, set := range regexp.MustCompile(`--set (\S+)=(\S+)`).FindAllStringSubmatch(typed[i], -1) {
		at, path := values, strings.Split(set[1], ".")
		for _, key := range path[:len(path)-1] {
			if at[key] == nil {
				at[key] = m{}
			}
			at = at[key].(m)
		}
		var value any
		require.NoError(t, yaml.Unmarshal([]byte(set[2]), &value))
		at[path[len(path)-1]] = value
	}
	rendered, err := lab.RenderChart("drydock", "drydock", values)
	require.NoError(t, err)
	text, err := lab.RenderedConfig(rendered)
	require.NoError(t, err)
	require.Contains(t, string(text), "mode: observe\n")
	var pods appsv1.Deployment
	require.NoError(t, yaml.Unmarshal([]byte(rendered["drydock/templates/deployment.yaml"]), &pods))
	image := pods.Spec.Template.Spec.Containers[0].Image
	require.Contains(t, typed, "docker push "+image, "the image that is pushed")
	name, tag, _ := strings.Cut(image, ":")
	require.Contains(t, typed, "make image IMAGE="+name+" VERSION="+tag, "and built")
	for _, object := range []string{"prometheusrule", "servicemonitor", "alertmanagerconfig"} {
		require.Contains(t, rendered["drydock/templates/"+object+".yaml"], "release: kube-prometheus-stack", object)
	}
}

// TestTheREADMEIsOneScreen, so that a newcomer reads it to the end.
func TestTheREADMEIsOneScreen(t *testing.T) {
	text := page(t, "README.md")
	require.Less(t, len(strings.Fields(text)), 500)
	require.LessOrEqual(t, len(link.FindAllString(text, -1)), 15)
}

// TestAnOlderDrydockDoesNothingWithWhatItDoesNotKnow tests what the page says, for an unknown
// version and for an unknown field.
func TestAnOlderDrydockDoesNothingWithWhatItDoesNotKnow(t *testing.T) {
	record := requests.Record(remediations.PhaseVerifying).Encode()
	_, err := remediations.DecodeRecord(record)
	require.NoError(t, err)
	for _, newer := range []string{strings.Replace(record, `"v":1`, `"v":2`, 1), strings.Replace(record, `"v":1`, `"v":1,"new":1`, 1)} {
		_, err := remediations.DecodeRecord(newer)
		require.Error(t, err, newer)
	}
	saved := (&ledger.Ledger{}).Encode()
	_, err = ledger.Decode(saved)
	require.NoError(t, err)
	for key, newer := range map[string]string{"v": "2", "status": `{"mode":1}`} {
		data := (&ledger.Ledger{}).Encode()
		data[key] = newer
		_, err := ledger.Decode(data)
		require.ErrorIs(t, err, ledger.ErrMalformed, key)
	}
	data := (&ledger.Ledger{}).Encode()
	data["status"] = `{"new":1}`
	newer, err := ledger.Decode(data)
	require.NoError(t, err, "an unknown field holds nothing")
	require.Contains(t, newer.Encode()["status"], `"new":1`)
	versions := section(t, upgrade, "Versions on record")
	require.Contains(t, versions, `"v":1`)
	require.Contains(t, versions, "key `v` | `"+saved["v"]+"`")
	require.Contains(t, versions, "drydock.dev/v1alpha1")
}

// TestTheMetricsOfThePagesExist: docs/metrics.md, which is generated from the program, has each
// metric that another page names.
func TestTheMetricsOfThePagesExist(t *testing.T) {
	known := page(t, "docs/metrics.md")
	name := regexp.MustCompile(`\bdrydock_[a-z_]+`)
	for _, p := range []string{"README.md", troubleshooting, "docs/install.md", "docs/operate/upgrade-uninstall.md", "docs/providers/civo.md"} {
		for _, metric := range name.FindAllString(page(t, p), -1) {
			require.Contains(t, known, "`"+metric+"`", "%s names %s", p, metric)
		}
	}
}

// TestEachPageIsInTheNavigationOnce: mkdocs.yml names each page once, and docs/README.md has a link
// to each.
func TestEachPageIsInTheNavigationOnce(t *testing.T) {
	var site struct {
		Dir string `json:"docs_dir"`
		Nav []any  `json:"nav"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(page(t, "mkdocs.yml")), &site))
	var listed []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			listed = append(listed, filepath.Join(site.Dir, v))
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	walk(site.Nav)
	var written []string
	for _, name := range pages(t) {
		if strings.HasPrefix(name, site.Dir+"/") {
			written = append(written, name)
		}
	}
	require.ElementsMatch(t, written, listed)

	const index = "docs/README.md"
	linked := map[string]bool{index: true}
	for _, l := range link.FindAllStringSubmatch(page(t, index), -1) {
		linked[filepath.Join("docs", l[1])] = true
	}
	for _, name := range written {
		require.True(t, linked[name], "%s does not link %s", index, name)
	}
}
