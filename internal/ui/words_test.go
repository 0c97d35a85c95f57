package ui

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clienttesting "k8s.io/client-go/testing"

	"drydock.dev/drydock/internal/actions"
	"drydock.dev/drydock/remediations"
)

// someWords are each action with a node that it can change, and the Node's annotations afterwards.
// The plugin's own test has the same annotations for the same commands, and test/plugin compares
// both on a real API server.
var someWords = map[string]struct {
	node              func(*corev1.Node)
	body              string
	key, value, shown string
}{
	"pause":       {func(*corev1.Node) {}, `"for":"2h","why":"disk"`, remediations.PauseKey, "2026-11-23T23:05:00Z disk", "kubectl drydock pause n --for 2h --why disk"},
	"resume":      {func(n *corev1.Node) { n.Annotations[remediations.PauseKey] = "true" }, ``, remediations.PauseKey, "", "kubectl drydock resume n"},
	"repair":      {func(*corev1.Node) {}, `"with":"reboot"`, remediations.RequestKey, "remediation/reboot", "kubectl drydock repair n --with reboot"},
	"approve":     {withRecord("bbbbbb", remediations.PhasePending), `"id":"bbbbbb"`, remediations.ApproveKey, "bbbbbb", "kubectl drydock approve n bbbbbb"},
	"cancel":      {withRecord("aaaaaa", remediations.PhaseVerifying), ``, remediations.CancelKey, "aaaaaa", "kubectl drydock cancel n"},
	"reset":       {withRecord("cccccc", remediations.PhaseExhausted), ``, remediations.ResetKey, "true", "kubectl drydock reset n"},
	"break-glass": {func(*corev1.Node) {}, `"why":"it's now; rm -rf"`, remediations.BreakGlassKey, "it's now; rm -rf", `kubectl drydock break-glass n --why 'it'\''s now; rm -rf'`},
}

// TestADryRunWritesNothing: the same action without a dry run writes the annotation. It runs for
// every action.
func TestADryRunWritesNothing(t *testing.T) {
	t.Parallel()
	require.Len(t, someWords, len(actions.All()))
	for word, c := range someWords {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			d := open(t, append(installed(), node("n", c.node))...)
			d.allow()
			d.honest()
			before := d.annotations("n")
			code, said := d.say("n", word, `{"params":{`+c.body+`},"dryRun":true}`)
			require.Equal(t, http.StatusOK, code, said)
			require.Equal(t, true, said["dryRun"])
			require.Equal(t, c.shown, said["command"])
			require.NotEmpty(t, said["said"])
			require.Equal(t, before, d.annotations("n"))

			code, refused := d.say("n", word, `{"params":{`+c.body+`},"dryRun":false}`)
			require.Equal(t, http.StatusConflict, code, "a write needs the number of its try: %v", refused)
			require.Equal(t, before, d.annotations("n"))
			click, _ := said["click"].(string)
			code, said = d.say("n", word, `{"params":{`+c.body+`},"dryRun":false,"click":"`+click+`"}`)
			require.Equal(t, http.StatusOK, code, said)
			require.Equal(t, false, said["dryRun"])
			require.Equal(t, c.shown, said["command"])
			value, there := d.annotations("n")[c.key]
			require.Equal(t, c.value, value)
			require.Equal(t, c.value != "", there)
		})
	}
}

// TestAMissingRightIsShownAndRefused by the server, too. A user with the right is the control.
func TestAMissingRightIsShownAndRefused(t *testing.T) {
	t.Parallel()
	for word, c := range someWords {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			for _, right := range []string{"patch", actions.Named(word).Verb} {
				if right == "" {
					continue
				}
				d := open(t, append(installed(), node("n", c.node))...)
				d.allow(right)
				before := d.annotations("n")
				html := d.get("/nodes/n")
				require.NotContains(t, html, `data-open="word-`+word+`"`)
				require.Regexp(t, `You may not <b>[^<]*`+word+`[^<]*</b>: you lack the verb &#34;`+right+`&#34;`, html)
				code, said := d.say("n", word, `{"params":{`+c.body+`}}`)
				require.Equal(t, http.StatusForbidden, code)
				require.Contains(t, said["problem"], `Nothing was written: you lack the verb "`+right+`"`)
				require.Equal(t, before, d.annotations("n"))
			}
			d := open(t, append(installed(), node("n", c.node))...)
			d.allow()
			html := d.get("/nodes/n")
			require.Contains(t, html, `data-open="word-`+word+`"`)
			require.Regexp(t, `data-open="word-`+word+`"[^>]* Your rights: patch nodes`, html)
		})
	}
}

// TestTheRepairOfAMeshLeaderHasItsButtons, like the node's.
func TestTheRepairOfAMeshLeaderHasItsButtons(t *testing.T) {
	t.Parallel()
	leads := func(n *corev1.Node) {
		withRecord("cccccc", remediations.PhaseExhausted)(n)
		r, err := remediations.DecodeRecord(n.Annotations[remediations.NodeRepairKey])
		require.NoError(t, err)
		r.Step.Name, r.Policy, r.Location = "promote-leader", "mesh-leader-degraded", "fra1"
		r.Done, r.Intent = nil, nil
		n.Annotations[remediations.LocationKey] = r.Encode()
		delete(n.Annotations, remediations.NodeRepairKey)
	}
	d := open(t, append(installed(), node("n", leads))...)
	d.allow()
	html := d.get("/nodes/n")
	require.Contains(t, html, `data-open="word-reset"`)
	require.NotContains(t, html, `data-open="word-cancel"`)
	require.Contains(t, html, `<option>reboot</option>`)
	require.NotContains(t, html, `<option>drain</option>`, "Drydock refuses that request")
}

func TestAReadOnlyPageRefusesAtTheServer(t *testing.T) {
	t.Parallel()
	for word, c := range someWords {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			d := openAs(t, true, append(installed(), node("n", c.node))...)
			d.allow()
			before := d.annotations("n")
			html := d.get("/nodes/n")
			require.NotContains(t, html, "<dialog class=\"word\"")
			require.NotContains(t, html, "data-open=")
			require.Contains(t, html, "The page is read-only")
			for _, dryRun := range []string{"true", "false"} {
				code, said := d.say("n", word, `{"params":{`+c.body+`},"dryRun":`+dryRun+`}`)
				require.Equal(t, http.StatusForbidden, code)
				require.Contains(t, said["problem"], "--read-only")
			}
			require.Equal(t, before, d.annotations("n"))

			d = open(t, append(installed(), node("n", c.node))...)
			d.allow()
			d.honest()
			code, _ := d.write("n", word, c.body)
			require.Equal(t, http.StatusOK, code, "the control")
		})
	}
}

// TestARefusalQuotesItsSource: admission's, the action's own, or the parameter check's.
func TestARefusalQuotesItsSource(t *testing.T) {
	t.Parallel()
	d := open(t, append(installed(), node("n"), node("m", withRecord("aaaaaa", remediations.PhaseVerifying)))...)
	d.allow()
	d.react("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "nodes"}, "n", errors.New("ValidatingAdmissionPolicy 'drydock' denied request: not on a Friday"))
	})
	for _, c := range []struct {
		node, word, body string
		code             int
		says             string
	}{
		{"n", "pause", `{"dryRun":true}`, http.StatusForbidden, "pausing n was refused: nodes \"n\" is forbidden: ValidatingAdmissionPolicy 'drydock' denied request: not on a Friday"},
		{"n", "cancel", `{"dryRun":true}`, http.StatusConflict, "there is no repair on n"},
		{"m", "cancel", `{"params":{"id":"bbbbbb"},"dryRun":true}`, http.StatusConflict, "there is no repair bbbbbb on m; its repair is aaaaaa by policy node-not-ready, Verifying"},
		{"m", "reset", `{"dryRun":true}`, http.StatusConflict, "repair aaaaaa of m is Verifying and not exhausted"},
		{"gone", "pause", `{"dryRun":true}`, http.StatusForbidden, ""},
		{"n", "pause", `{"params":{"for":"soon"}}`, http.StatusUnprocessableEntity, `--for is "soon"; write a duration, for example 30m, 2h or 1d`},
		{"n", "pause", `{"params":{"with":"reboot"}}`, http.StatusUnprocessableEntity, `pause has no parameter "with"`},
		{"n", "break-glass", `{"params":{"why":" "}}`, http.StatusUnprocessableEntity, "--why is required"},
		{"n", "break-glass", `{"params":{"why":"` + strings.Repeat("x", actions.MaxWhy+1) + `"}}`, http.StatusUnprocessableEntity, "--why has 257 bytes; the limit is 256"},
		{"n", "repair", `{}`, http.StatusUnprocessableEntity, "give --with REMEDIATION or --policy NAME"},
		{"n", "repair", `{"params":{"with":"prayer"}}`, http.StatusUnprocessableEntity, `there is no remediation "prayer" of a node`},
		{"n", "dance", `{}`, http.StatusNotFound, "There is no such action on a node."},
		{"n", "pause", `{"params":{"why":1}}`, http.StatusBadRequest, "The request's body is not valid"},
		{"n", "pause", `{"dryrun":"true","more":1}`, http.StatusBadRequest, "The request's body is not valid"},
		{"n", "pause", `{} {}`, http.StatusBadRequest, "more than one JSON value"},
	} {
		code, said := d.say(c.node, c.word, c.body)
		require.Equal(t, c.code, code, "%s %s: %v", c.word, c.body, said)
		require.Contains(t, said["problem"], c.says)
	}
	require.Empty(t, d.annotations("n"))
}

// TestWithoutRightsOfItsOwnAdmissionAsksForNone: if the configuration says so, the right to patch
// nodes is enough.
func TestWithoutRightsOfItsOwnAdmissionAsksForNone(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{true, false} {
		objects := installed()
		if cm, is := objects[2].(*corev1.ConfigMap); is && !asks {
			cm.Data["drydock.yaml"] += "webhook: {certDir: /etc/drydock/webhook, rights: false}\n"
		}
		d := open(t, append(objects, node("n", withRecord("aaaaaa", remediations.PhaseVerifying)))...)
		d.allow("cancel")
		code, said := d.say("n", "cancel", `{"dryRun":true}`)
		if asks {
			require.Equal(t, http.StatusForbidden, code, said)
			continue
		}
		require.Equal(t, http.StatusOK, code, said)
		require.Contains(t, d.get("/nodes/n"), `data-open="word-cancel"`)
	}
}

func TestTheCommandIsShownAsTheFormStands(t *testing.T) {
	t.Parallel()
	d := open(t, append(installed(), node("n"))...)
	require.Equal(t, "kubectl drydock pause n --for 2h --why '$(id)'", d.facts("/nodes/n/words/pause?for=2h&why=$(id)&other=1")["command"])
}
