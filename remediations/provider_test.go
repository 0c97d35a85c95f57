package remediations_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	k8slabels "k8s.io/apimachinery/pkg/labels"

	. "drydock.dev/drydock/remediations"
	"drydock.dev/drydock/remediations/lifecycle"
	"drydock.dev/drydock/remediations/targets/node"
	"drydock.dev/drydock/remediations/testing/scene"
)

// TestWhoServesANode: a provider whose selector has the Node takes precedence over one with the
// Node's scheme, and that over a provider of any Node. If two providers claim the Node equally, no
// provider serves it.
func TestWhoServesANode(t *testing.T) {
	civo, bmc, any := scene.Serving("civo", "civo://", ""), scene.Serving("bmc", "bmc://", ""), scene.Serving("ssh", "", "")
	racked, everything := scene.Serving("racked", "bmc://", "rack=1"), scene.Serving("all", "", "")
	everything.NodeSelector = k8slabels.Everything()
	other := scene.Serving("other", "civo://", "")
	named, elsewhere, picky := scene.Serving("named", "", ""), scene.Serving("elsewhere", "", ""), scene.Serving("picky", "", "rack=1")
	named.Names, elsewhere.Names, picky.Names = map[string]bool{"n1": true}, map[string]bool{"n2": true}, map[string]bool{"n1": true}
	other.Steps = []string{"replace"}
	for name, c := range map[string]struct {
		providers       []Provider
		id, rack        string
		serves, against string
	}{
		"by its scheme":                          {[]Provider{civo, bmc}, "bmc://1", "", "bmc", ""},
		"of the first":                           {[]Provider{civo, bmc}, "civo://1", "", "civo", ""},
		"nobody's":                               {[]Provider{civo, bmc}, "aws:///1", "", "", `no provider serves Node n1 for the step reboot: its spec.providerID is "aws:///1", and civo serves Nodes whose spec.providerID begins with civo://, bmc serves`},
		"nobody's, with one provider":            {[]Provider{civo}, "aws:///1", "", "", "civo serves Nodes whose spec.providerID begins with civo://"},
		"a scheme that only begins alike":        {[]Provider{civo}, "civo:1", "", "", "no provider serves Node n1"},
		"no ID, and one provider":                {[]Provider{civo}, "", "", "civo", ""},
		"no ID, and two":                         {[]Provider{civo, bmc}, "", "", "", `civo and bmc each serve Node n1 for the step reboot, so Drydock calls none of them; give one of them a nodeSelector. The Node's spec.providerID is ""`},
		"a selector before the scheme":           {[]Provider{civo, racked}, "civo://1", "1", "racked", ""},
		"not selected":                           {[]Provider{civo, racked}, "civo://1", "2", "civo", ""},
		"its scheme does not help who selects":   {[]Provider{racked}, "bmc://1", "2", "", "racked serves Nodes with the labels rack=1"},
		"a scheme before any":                    {[]Provider{any, civo}, "civo://1", "", "civo", ""},
		"any":                                    {[]Provider{any, civo}, "k3s://n1", "", "ssh", ""},
		"two that serve any":                     {[]Provider{any, scene.Serving("ssh2", "", "")}, "k3s://n1", "", "", "ssh and ssh2 each serve Node n1"},
		"two of one scheme":                      {[]Provider{civo, scene.Serving("civo2", "civo://", "")}, "civo://1", "", "", "civo and civo2 each serve Node n1"},
		"two that select it":                     {[]Provider{racked, everything}, "bmc://1", "1", "", "racked and all each serve Node n1"},
		"who selects every Node":                 {[]Provider{civo, everything}, "aws:///1", "", "all", ""},
		"named before the scheme":                {[]Provider{civo, named}, "civo://1", "", "named", ""},
		"another is named":                       {[]Provider{elsewhere}, "", "", "", "elsewhere serves the 1 Node it names"},
		"another is named, and the scheme":       {[]Provider{civo, elsewhere}, "civo://1", "", "civo", ""},
		"no ID, and named":                       {[]Provider{civo, named}, "", "", "named", ""},
		"named and selected":                     {[]Provider{picky}, "", "1", "picky", ""},
		"named and not selected":                 {[]Provider{picky}, "", "2", "", "picky serves those of the 1 Node it names that have the labels rack=1"},
		"two that name it":                       {[]Provider{named, picky}, "", "1", "", "named and picky each serve Node n1"},
		"another step's provider has no part":    {[]Provider{civo, other}, "civo://1", "", "civo", ""},
		"a step that no provider has":            {[]Provider{other}, "aws:///1", "", "", ""},
		"control: without providers of any step": {nil, "aws:///1", "", "", ""},
	} {
		n := scene.Bare("n1")
		n.Spec.ProviderID = c.id
		n.Labels = map[string]string{"rack": c.rack}
		serves, against := (&Config{Providers: c.providers}).ProviderOf("reboot", n)
		require.Equal(t, c.serves, serves, name)
		require.Equal(t, c.against == "", against == "", "%s: %s", name, against)
		require.Contains(t, against, c.against, name)
	}
}

// TestAnIntentNamesItsProviderWhereThereIsAChoice: the intent has the provider's name only if
// several providers are configured for the step. Otherwise records stay as in older versions.
func TestAnIntentNamesItsProviderWhereThereIsAChoice(t *testing.T) {
	for name, c := range map[string]struct {
		providers []Provider
		asked     string // the provider that was asked about the machine
		verb      lifecycle.Verb
		intent    string
	}{
		"one":                {[]Provider{scene.Serving("civo", "civo://", "")}, "civo", lifecycle.VerbIssue, ""},
		"two":                {[]Provider{scene.Serving("civo", "civo://", ""), scene.Serving("bmc", "bmc://", "")}, "civo", lifecycle.VerbIssue, "civo"},
		"another was asked":  {[]Provider{scene.Serving("civo", "civo://", ""), scene.Serving("bmc", "bmc://", "")}, "bmc", lifecycle.VerbLook, ""},
		"one that is no one": {[]Provider{scene.Serving("bmc", "bmc://", "")}, "bmc", lifecycle.VerbHold, ""},
	} {
		sc := scene.Scene{Survey: &scene.Survey{Step: "reboot"}}
		s := sc.State(t)
		s.Node.Spec.ProviderID = "civo://i-1"
		s.Config.Providers, s.Survey.Provider = c.providers, c.asked
		d := node.Decide(s, scene.Noon)
		require.Equal(t, c.verb, d.Verb, "%s: %s", name, d.Message)
		switch c.verb {
		case lifecycle.VerbIssue:
			require.Equal(t, c.intent, d.Record.Intent.Provider, name)
			require.Equal(t, "civo", s.Config.ProviderOfIntent("reboot", d.Record.Intent), name)
		case lifecycle.VerbLook:
			require.True(t, d.Ask.Survey, name)
		default:
			require.Equal(t, ReasonProviderAbsent, d.Reason, name)
			require.False(t, d.Fleetwide, name)
		}
	}
}

// TestWhoIsAskedAboutAnIntent: if the Node is gone, Drydock finds the provider of an intent by the
// record, or because only one provider is possible.
func TestWhoIsAskedAboutAnIntent(t *testing.T) {
	civo, bmc := scene.Serving("civo", "civo://", ""), scene.Serving("bmc", "bmc://", "")
	for name, c := range map[string]struct {
		providers []Provider
		intent    Intent
		want      string
	}{
		"on record":                           {[]Provider{civo, bmc}, Intent{Provider: "bmc", ProviderID: "civo://1"}, "bmc"},
		"of a time with one":                  {[]Provider{civo}, Intent{}, "civo"},
		"of a time with one, and two by now":  {[]Provider{civo, bmc}, Intent{ProviderID: "civo://1"}, "civo"},
		"on record, and no longer configured": {[]Provider{civo}, Intent{Provider: "bmc", ProviderID: "civo://1"}, "bmc"},
		"nobody any more":                     {nil, Intent{ProviderID: "civo://1"}, ""},
	} {
		require.Equal(t, c.want, (&Config{Providers: c.providers}).ProviderOfIntent("reboot", &c.intent), name)
	}
	r := &Record{V: 1, ID: "abc234", Policy: "p", Cause: Cause{Alert: scene.FP}, Phase: PhaseVerifying, Step: StepRef{Name: "reboot", Attempt: 1}, Began: scene.Noon, Since: scene.Noon, Deadline: scene.Noon.Add(time.Hour), Intent: &Intent{ID: "abc234-0-1", At: scene.Noon, Provider: strings.Repeat("p", MaxProviderName)}}
	_, err := DecodeRecord(r.Encode())
	require.NoError(t, err)
	r.Intent.Provider += "p"
	_, err = DecodeRecord(r.Encode())
	require.ErrorContains(t, err, "is not the name of a provider")
}

// TestNothingIsDrainedForAStepWithoutAProvider: Drydock does not drain a node if the next step has
// no provider on it, because the repair would then be held with a drained node.
func TestNothingIsDrainedForAStepWithoutAProvider(t *testing.T) {
	for id, verb := range map[string]lifecycle.Verb{"aws:///i-1": lifecycle.VerbHold, "civo://i-1": lifecycle.VerbIssue} {
		sc := scene.Scene{Policy: scene.Policy{Plan: []string{"drain", "replace"}}, Provided: []string{"drain", "replace"}}
		s := sc.State(t)
		civo := scene.Serving("civo", "civo://", "")
		civo.Steps = []string{"replace"}
		s.Node.Spec.ProviderID, s.Config.Providers = id, []Provider{civo}
		d := node.Decide(s, scene.Noon)
		require.Equal(t, verb, d.Verb, "%s: %s", id, d.Message)
		if verb == lifecycle.VerbHold {
			require.Equal(t, ReasonProviderAbsent, d.Reason)
			require.Contains(t, d.Message, "no provider serves Node n1 for the step replace")
		}
	}
}

// TestADrainIsPassedOverWhereTheNextStepDrains: Drydock leaves out a drain before a replacement by
// Karpenter, which drains its machines itself. It does not leave out a drain before any other step.
func TestADrainIsPassedOverWhereTheNextStepDrains(t *testing.T) {
	karpenter, civo, bmc := scene.Serving("karpenter", "", ""), scene.Serving("civo", "civo://", ""), scene.Serving("bmc", "bmc://", "")
	karpenter.Steps, karpenter.Drains, civo.Steps, bmc.Steps = []string{"replace"}, true, []string{"reboot", "replace"}, []string{"reboot"}
	for name, c := range map[string]struct {
		id     string
		plan   []string
		passed bool
	}{
		"before its replacement":               {"kwok://1", []string{"drain", "replace"}, true},
		"before a step that it lacks":          {"kwok://1", []string{"drain", "reboot", "replace"}, true},
		"two drains":                           {"kwok://1", []string{"drain", "drain", "replace"}, true},
		"before another provider's":            {"civo://1", []string{"drain", "replace"}, false},
		"before another provider's other step": {"civo://1", []string{"drain", "reboot", "replace"}, false},
		"before another step than its":         {"bmc://1", []string{"drain", "reboot", "replace"}, false},
		"a step that is no drain":              {"bmc://1", []string{"reboot", "replace"}, false},
		"alone":                                {"kwok://1", []string{"drain"}, false},
	} {
		sc := scene.Scene{Policy: scene.Policy{Plan: c.plan}, Provided: []string{"drain", "reboot", "replace"}, Survey: &scene.Survey{Step: c.plan[0]}}
		s := sc.State(t)
		s.Node.Spec.ProviderID, s.Config.Providers, s.Survey.Provider = c.id, []Provider{karpenter, civo, bmc}, "bmc"
		d := node.Decide(s, scene.Noon)
		if !c.passed {
			require.Equal(t, lifecycle.VerbIssue, d.Verb, "%s: %s", name, d.Message)
			require.Equal(t, c.plan[0], d.Record.Step.Name, name)
			continue
		}
		require.Equal(t, lifecycle.VerbHold, d.Verb, "%s: %s", name, d.Message)
		require.Contains(t, d.Message, "drain is passed over: karpenter drains Node n1 itself in the step replace", name)
		require.Equal(t, []Passed{{Index: 0, Name: "drain", Why: "karpenter drains Node n1 itself in the step replace"}}, d.Record.Passed, name)
		require.Equal(t, c.plan[1], d.Record.Step.Name, name)
		require.False(t, d.Cordon, name)
	}
}

// TestAPersonsReplacementPassesItsDrainOver: a requested replacement by a provider that drains
// itself is not refused, and Drydock leaves out its drain.
func TestAPersonsReplacementPassesItsDrainOver(t *testing.T) {
	karpenter := scene.Serving("karpenter", "", "")
	karpenter.Steps = []string{"replace"}
	for _, drains := range []bool{true, false} {
		karpenter.Drains = drains
		sc := scene.Scene{Policy: scene.Policy{Plan: []string{"reboot"}}, Provided: []string{"drain", "replace"}, Survey: &scene.Survey{Step: "replace"}}
		s := sc.State(t)
		s.Config.Providers = []Provider{karpenter}
		s.Node.Annotations[RequestKey] = "remediation/replace"
		d := node.Decide(s, scene.Noon)
		require.NotNil(t, d.Record, d.Message)
		require.Equal(t, "remediation/replace", d.Record.Cause.Request)
		require.Equal(t, []string{RequestKey}, d.Consume)
		for _, n := range d.Notices {
			require.NotEqual(t, lifecycle.RequestRefused, n.Reason, n.Message)
		}
		want := map[bool]string{true: "replace", false: "drain"}[drains]
		require.Equal(t, want, d.Record.Step.Name, d.Message)
		require.Equal(t, drains, len(d.Record.Passed) == 1)
	}
}

// TestAStepThatANodesProviderLacksIsPassedOver: if a step has no provider on the Node, Drydock
// leaves it out and reports this, and a later step with a provider follows. If no later step has
// one, or if two providers claim the Node, Drydock leaves nothing out.
func TestAStepThatANodesProviderLacksIsPassedOver(t *testing.T) {
	civo, capi := scene.Serving("civo", "civo://", ""), scene.Serving("clusterAPI", "kwok://", "")
	civo.Steps, capi.Steps = []string{"reboot", "replace"}, []string{"replace"}
	both, second := scene.Serving("bmc", "", ""), scene.Serving("bmc2", "", "")
	for name, c := range map[string]struct {
		id        string
		providers []Provider
		plan      []string
		gpu       bool
		verb      lifecycle.Verb
		next      string // the step of the record that is held or issued
	}{
		"its provider has it":               {"civo://1", []Provider{civo, capi}, []string{"reboot", "replace"}, false, lifecycle.VerbIssue, "reboot"},
		"its provider lacks it":             {"kwok://1", []Provider{civo, capi}, []string{"reboot", "replace"}, false, lifecycle.VerbHold, "replace"},
		"a drain comes between":             {"kwok://1", []Provider{civo, capi}, []string{"reboot", "drain", "replace"}, false, lifecycle.VerbHold, "drain"},
		"a drain goes before both":          {"kwok://1", []Provider{civo, capi}, []string{"drain", "reboot", "replace"}, false, lifecycle.VerbIssue, "drain"},
		"no later step":                     {"kwok://1", []Provider{civo, capi}, []string{"reboot"}, false, lifecycle.VerbHold, "reboot"},
		"no provider of any later step":     {"aws:///1", []Provider{civo, capi}, []string{"reboot", "replace"}, false, lifecycle.VerbHold, "reboot"},
		"the later step refuses the Node":   {"kwok://1", []Provider{civo, capi}, []string{"reboot", "replace"}, true, lifecycle.VerbHold, "reboot"},
		"a drain for what refuses the Node": {"kwok://1", []Provider{civo, capi}, []string{"drain", "reboot", "replace"}, true, lifecycle.VerbHold, "drain"},
		"two claim it":                      {"kwok://1", []Provider{both, second, capi}, []string{"reboot", "replace"}, false, lifecycle.VerbHold, "reboot"},
		"a drain for what two claim":        {"kwok://1", []Provider{both, second, capi}, []string{"drain", "reboot", "replace"}, false, lifecycle.VerbHold, "drain"},
	} {
		sc := scene.Scene{Policy: scene.Policy{Plan: c.plan}, Provided: []string{"drain", "reboot", "replace"}, Survey: &scene.Survey{Step: "reboot"}}
		s := sc.State(t)
		s.Node.Spec.ProviderID, s.Config.Providers, s.Survey.Provider = c.id, c.providers, "civo"
		if c.gpu {
			s.Node.Labels["nvidia.com/gpu.present"] = "true"
		}
		d := node.Decide(s, scene.Noon)
		require.Equal(t, c.verb, d.Verb, "%s: %s", name, d.Message)
		require.Equal(t, c.next, d.Record.Step.Name, "%s: %s", name, d.Message)
		if c.verb == lifecycle.VerbIssue {
			continue
		}
		require.Equal(t, ReasonProviderAbsent, d.Reason, name)
		require.Contains(t, d.Message, "Node n1 for the step reboot", name)
		require.Equal(t, c.next != c.plan[0], len(d.Record.Passed) == 1, name)
		if len(d.Record.Passed) == 1 {
			require.Contains(t, d.Message, "reboot is passed over: no provider serves Node n1 for the step reboot")
			require.Equal(t, "reboot", d.Record.Passed[0].Name)
		}
	}
}
