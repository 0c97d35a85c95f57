package backtest

import (
	"cmp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

// TestAnAlertMattersIfAnythingUsesIt: an alert is not needed if its known labels rule it out.
func TestAnAlertMattersIfAnythingUsesIt(t *testing.T) {
	t.Parallel()
	routing := func(text string) *Routing {
		r, err := ReadRouting([]byte(text))
		require.NoError(t, err)
		return r
	}
	set := func(alert string, more ...string) model.LabelSet {
		out := model.LabelSet{"alertname": model.LabelValue(alert)}
		for _, pair := range more {
			name, value, _ := strings.Cut(pair, "=")
			out[model.LabelName(name)] = model.LabelValue(value)
		}
		return out
	}
	mine := dayConfig + "- {name: mine, match: ['remediation=\"mine\"'], witness: [{ready: false}], plan: [{step: reboot, wait: 10m}]}\n"
	options := func(config string) Options {
		o := optionsOf(t, config)
		o.Config.Receiver = "drydock"
		return o
	}
	for _, c := range []struct {
		what    string
		config  string
		routing string
		labels  model.LabelSet
		matters bool
	}{
		{"a policy takes it", "", "", set("NodeNotReady", "remediation=node-not-ready"), true},
		{"a policy may take it, by a label that is not known", "", "", set("Mine"), true},
		{"no policy takes it", "", "", set("Mine", "remediation=none"), false},
		{"one more policy takes it", mine, "", set("Mine", "remediation=mine"), true},
		{"a policy that is off takes it", strings.Replace(mine, "name: mine", "name: mine, mode: off", 1), "", set("Mine", "remediation=mine"), false},
		{"it makes Alertmanager count as blind", "", "", set("DrydockSourceDown", "remediation=none"), true},
		{"it inhibits", "", "", set("NodesNotReady", "remediation=none"), true},
		{"it is posted together with others", "", "route: {receiver: drydock, group_by: [cluster]}", set("Mine", "remediation=none"), true},
		{"it is posted with those of its name alone", "", "route: {receiver: drydock, group_by: [cluster, alertname]}", set("Mine", "remediation=none"), false},
		{"each is posted on its own", "", "route: {receiver: drydock, group_by: [...]}", set("Mine", "remediation=none"), false},
		{"it goes elsewhere", "", "route: {receiver: pager, group_by: [cluster]}", set("Mine", "remediation=none"), false},
		{"a route below posts it together with others", "", "route: {receiver: pager, routes: [{receiver: drydock, group_by: [cluster], matchers: ['remediation=\"none\"']}]}", set("Mine", "remediation=none"), true},
		{"the route below does not take it", "", "route: {receiver: pager, routes: [{receiver: drydock, group_by: [cluster], matchers: ['remediation=\"other\"']}]}", set("Mine", "remediation=none"), false},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			o := options(cmp.Or(c.config, dayConfig))
			if c.routing != "" {
				o.Alertmanager = routing(c.routing)
			}
			require.Equal(t, c.matters, Matters([]Named{{"first", o}})(c.labels))
			other := optionsOf(t, strings.Replace(dayConfig, "node-not-ready\"", "else\"", 1))
			require.True(t, Matters([]Named{{"first", o}, {"second", other}})(set("Mine", "remediation=else")), "the second configuration asks for it")
		})
	}
}
