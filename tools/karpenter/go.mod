module drydock.dev/drydock/tools/karpenter

go 1.26.8

require sigs.k8s.io/karpenter v1.14.0
