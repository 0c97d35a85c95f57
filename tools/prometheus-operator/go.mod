module drydock.dev/drydock/tools/prometheus-operator

go 1.26.8

require github.com/prometheus-operator/prometheus-operator v0.90.1
