package main

import (
	"runtime/debug"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/cli"
	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/internal/config/section"
	"drydock.dev/drydock/remediations"
	civosettings "drydock.dev/drydock/remediations/providers/civo/settings"
)

// TestInfoNamesTheCluster: by the id that its provider knows, or else by the label of its alerts.
func TestInfoNamesTheCluster(t *testing.T) {
	civo := &civosettings.Civo{ClusterID: "c0ffee"}
	for name, test := range map[string]struct {
		cfg  *config.Config
		want string
	}{
		"Civo's id":       {&config.Config{Core: &remediations.Config{ClusterValue: "prod"}, Providers: map[string]section.Provider{"civo": civo}}, "c0ffee"},
		"the alerts' one": {&config.Config{Core: &remediations.Config{ClusterValue: "prod"}}, "prod"},
		"nothing says it": {&config.Config{Core: &remediations.Config{}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			registerInfo(reg, test.cfg)
			families, err := reg.Gather()
			require.NoError(t, err)
			require.Len(t, families, 1)
			require.Equal(t, "drydock_info", families[0].GetName())
			got := map[string]string{}
			for _, l := range families[0].GetMetric()[0].GetLabel() {
				got[l.GetName()] = l.GetValue()
			}
			require.Equal(t, map[string]string{"version": thisBuild().Now(), "cluster_id": test.want}, got)
		})
	}
}

func TestVersion(t *testing.T) {
	code, stdout, _ := call(t, "version")
	require.Equal(t, cli.ExitOK, code)
	require.Regexp(t, `^drydock version \S+, commit \S+, go go\S+\n$`, stdout)

	code, flag, _ := call(t, "--version")
	require.Equal(t, cli.ExitOK, code)
	require.Equal(t, stdout, flag)

	require.Equal(t, "drydock version (devel), commit unknown, go unknown", thisBuild().Line(nil))
	require.Equal(t, "drydock version v1.2.3, commit abc+dirty, go go1.26.8", thisBuild().Line(&debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "true"}},
	}))
}
