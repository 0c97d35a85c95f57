package cluster

import "fmt"

// A program of cloudnativelabs/kube-router. Only its part that enforces NetworkPolicies runs: the
// pods' network is routes and a CNI plugin without policies.
const router = "kube-router"

const routerService = "kube-router.service"

const routerUnit = `[Unit]
Description=kube-router, for NetworkPolicies
After=network.target
StartLimitIntervalSec=0
[Service]
ExecStart=/usr/local/bin/` + router + ` --kubeconfig=` + kubernetesDir + `kube-router.kubeconfig --hostname-override=%s --run-firewall=true --run-router=false --run-service-proxy=false --service-cluster-ip-range=` + serviceNetwork + ` --health-port=0
Restart=always
RestartSec=3
[Install]
WantedBy=multi-user.target
`

func routerUnitOf(node string) []byte { return fmt.Appendf(nil, routerUnit, node) }
