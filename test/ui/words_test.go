package ui

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/lab/browser"
	"drydock.dev/drydock/remediations"
)

// readsOnly are the rights of a person who may read everything and write nothing.
const readsOnly = readsAll

// say does what a person does on the node's page: it opens the dialog of an annotation, types,
// tries the change on the server, and writes it. write is the second half.
func (c *cluster) say(at *browser.Tab, word string, typed map[string]string) {
	c.t.Helper()
	c.try(at, word, typed)
	await(c.t, at, "the dry run of "+word+" is answered", fmt.Sprintf(`document.querySelector(%q).disabled === false`, "#word-"+word+" [data-do=write]"))
}

// try does the same as say, up to the answer to the try.
func (c *cluster) try(at *browser.Tab, word string, typed map[string]string) {
	c.t.Helper()
	await(c.t, at, "the word "+word+" is offered", fmt.Sprintf(`document.getElementById(%q)`, "open-"+word))
	require.NoError(c.t, at.Click(c.t.Context(), "#open-"+word))
	for field, text := range typed {
		input := "#" + word + "-" + field
		choice, err := browser.Eval[bool](c.t.Context(), at, fmt.Sprintf(`document.querySelector(%q).tagName === "SELECT"`, input))
		require.NoError(c.t, err)
		if choice {
			_, err = browser.Eval[bool](c.t.Context(), at, fmt.Sprintf(`(f => { f.value = %q; f.dispatchEvent(new Event("input", {bubbles: true})); f.dispatchEvent(new Event("change", {bubbles: true})); return true })(document.querySelector(%q))`, text, input))
			require.NoError(c.t, err)
		} else {
			require.NoError(c.t, at.Type(c.t.Context(), input, text))
		}
	}
	require.NoError(c.t, at.Click(c.t.Context(), "#word-"+word+" [data-do=try]"))
}

// write is the second half of say.
func (c *cluster) write(at *browser.Tab, word string) {
	c.t.Helper()
	dialog := "#word-" + word
	require.NoError(c.t, at.Click(c.t.Context(), dialog+" [data-do=write]"))
}

// annotated waits until the node has the annotation with this value, and returns the Node. An empty
// value means that the node does not have the annotation.
func (c *cluster) annotated(name, key string, there bool) *corev1.Node {
	c.t.Helper()
	var n *corev1.Node
	require.Eventually(c.t, func() bool {
		n = c.node(name)
		_, is := n.Annotations[key]
		return is == there
	}, lab.Patience, pause, "%s on %s", key, name)
	return n
}

// An annotation that a person writes through the page leaves exactly the same on the Node as the
// command does. Nothing is written before the person confirms.
func TestAWordThroughThePageIsTheCommands(t *testing.T) {
	c := newCluster(t)
	p := c.ui("")
	at := tab(t)
	c.open(at, p, "/")
	pending := func(node string) { c.record(node, remediations.PhasePending, nil) }
	exhausted := func(node string) { c.record(node, remediations.PhaseExhausted, nil) }
	verifying := func(node string) { c.record(node, remediations.PhaseVerifying, nil) }
	paused := func(node string) { c.patch(node, map[string]any{remediations.PauseKey: "true disk"}, nil) }
	for i, w := range []struct {
		word    string
		typed   map[string]string
		command string
		key     string
		before  func(node string)
	}{
		{"pause", map[string]string{"why": "disk swap"}, "pause NODE --why disk-swap", remediations.PauseKey, nil},
		{"resume", nil, "resume NODE", remediations.PauseKey, paused},
		{"approve", nil, "approve NODE", remediations.ApproveKey, pending},
		{"cancel", nil, "cancel NODE", remediations.CancelKey, verifying},
		{"reset", nil, "reset NODE", remediations.ResetKey, exhausted},
		{"repair", map[string]string{"with": "reboot"}, "repair NODE --with reboot", remediations.RequestKey, nil},
		{"break-glass", map[string]string{"why": "replacing a disk"}, "break-glass NODE --why replacing-a-disk", remediations.BreakGlassKey, verifying},
	} {
		byPage, byCommand := fmt.Sprintf("node-%d", i), fmt.Sprintf("node-%d", i+len("seven!!"))
		for _, node := range []string{byPage, byCommand} {
			if w.before != nil {
				w.before(node)
			}
		}
		was := c.node(byPage).Annotations
		c.open(at, p, "/nodes/"+byPage)
		c.say(at, w.word, w.typed)
		require.Equal(t, was, c.node(byPage).Annotations, "%s: a dry run writes nothing", w.word)
		c.write(at, w.word)
		_, removes := was[w.key]
		page := c.annotated(byPage, w.key, !removes)

		c.command("", strings.ReplaceAll(w.command, "NODE", byCommand))
		command := c.annotated(byCommand, w.key, !removes)
		require.Equal(t, words(command, byCommand), words(page, byPage), w.word)
		require.Equal(t, writers(command, w.key), writers(page, w.key), "%s: who wrote it", w.word)
		c.settle()
	}
}

// words returns the annotations that people write, without the parts that always differ between two
// nodes.
func words(n *corev1.Node, node string) map[string]string {
	out := maps.Clone(n.Annotations)
	for k, v := range out {
		switch {
		case !strings.HasPrefix(k, "drydock.dev/"):
			delete(out, k)
		case k == remediations.ApproveKey || k == remediations.CancelKey:
			out[k] = strings.Replace(v, idOf(node), "the repair's ID", 1)
		default:
			out[k] = strings.ReplaceAll(v, "-", " ") // in the command, several words are one argument
		}
	}
	return out
}

// writers returns the field managers of the annotation.
func writers(n *corev1.Node, key string) (out []string) {
	for _, f := range n.ManagedFields {
		if strings.Contains(string(f.FieldsV1.GetRawBytes()), `"f:`+key+`"`) {
			out = append(out, f.Manager)
		}
	}
	return out
}

// command runs `kubectl drydock` with the words of the line as arguments.
func (c *cluster) command(kubeconfig, line string) {
	c.t.Helper()
	program, err := c.lab.PluginProgram(c.t.Context())
	require.NoError(c.t, err)
	if kubeconfig == "" {
		kubeconfig = c.lab.AdminKubeconfig()
	}
	cmd := exec.CommandContext(c.t.Context(), program, append(strings.Fields(line), "--kubeconfig", kubeconfig)...)
	cmd.Env = []string{"HOME=" + c.t.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	require.NoError(c.t, err, "%s: %s", line, out)
}

// A person who may only read sees that before a click. If the page sends a change anyway, it is
// refused.
func TestWhoMayOnlyLookSeesWhy(t *testing.T) {
	c := newCluster(t)
	const node = "node-16"
	c.record(node, remediations.PhasePending, nil)
	p := c.ui(c.account("looks", readsOnly, ""))
	at := tab(t)
	c.open(at, p, "/nodes/"+node)
	await(t, at, "the page says which right is missing", shows("pause", "patch", "nodes"))
	offered, err := browser.Eval[int](t.Context(), at, `document.querySelectorAll("button[data-open]").length`)
	require.NoError(t, err)
	require.Zero(t, offered, "a button that would be refused")

	v := newVisitor(t, p)
	path, body := pausing(node)
	code, text := v.ask("POST", v.root+path, body, v.right)
	require.Equal(t, 403, code, text)
	require.Contains(t, text, "nodes")
	require.NotContains(t, c.node(node).Annotations, remediations.PauseKey)

	// The same with the right to patch nodes.
	p = c.ui(c.account("writes", strings.Replace(readsAll, "verbs: [get, list, watch]", "verbs: [get, list, watch, patch]", 1), ""))
	c.open(at, p, "/nodes/"+node)
	c.say(at, "pause", map[string]string{"why": "disk"})
	c.write(at, "pause")
	c.annotated(node, remediations.PauseKey, true)
}

// A page that was started read-only changes nothing.
func TestAReadOnlyPageChangesNothing(t *testing.T) {
	c := newCluster(t)
	const node = "node-17"
	p := c.ui("", "--read-only")
	at := tab(t)
	c.open(at, p, "/nodes/"+node)
	await(t, at, "the page says that it is read-only", shows("--read-only"))
	offered, err := browser.Eval[int](t.Context(), at, `document.querySelectorAll("button[data-open]").length`)
	require.NoError(t, err)
	require.Zero(t, offered)
	v := newVisitor(t, p)
	path, body := pausing(node)
	code, text := v.ask("POST", v.root+path, body, v.right)
	require.Equal(t, 403, code, text)
	require.NotContains(t, c.node(node).Annotations, remediations.PauseKey)
}
