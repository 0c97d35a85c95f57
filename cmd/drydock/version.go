package main

import (
	"github.com/prometheus/client_golang/prometheus"

	build "drydock.dev/drydock/internal/version"
)

// version and commit are set by the linker in a release.
var version, commit string

func thisBuild() build.Build {
	return build.Build{Program: "drydock", Version: version, Commit: commit}
}

// registerBuildInfo makes the metric that says which version runs.
func registerBuildInfo(reg prometheus.Registerer) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "drydock_build_info", Help: "1, with the version that runs.",
		ConstLabels: prometheus.Labels{"version": thisBuild().Now()},
	})
	info.Set(1)
	reg.MustRegister(info)
}
