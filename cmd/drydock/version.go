package main

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"drydock.dev/drydock/internal/config"
	build "drydock.dev/drydock/internal/version"
	civosettings "drydock.dev/drydock/remediations/providers/civo/settings"
)

// The linker sets version and commit in a release.
var version, commit string

func thisBuild() build.Build {
	return build.Build{Program: "drydock", Version: version, Commit: commit}
}

func registerBuildInfo(reg prometheus.Registerer) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "drydock_build_info", Help: "Always 1. The label version has the version of the running Drydock.",
		ConstLabels: prometheus.Labels{"version": thisBuild().Now()},
	})
	info.Set(1)
	reg.MustRegister(info)
}

func registerInfo(reg prometheus.Registerer, cfg *config.Config) {
	id := cfg.Core.ClusterValue
	if c, ok := config.Of[*civosettings.Civo](cfg); ok {
		id = cmp.Or(c.ClusterID, id)
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "drydock_info", Help: "Always 1. The labels have the version of the running Drydock and the ID of the cluster: providers.civo.clusterID, or else cluster.value.",
		ConstLabels: prometheus.Labels{"version": thisBuild().Now(), "cluster_id": id},
	})
	info.Set(1)
	reg.MustRegister(info)
}
