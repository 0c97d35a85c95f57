package main

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"

	"drydock.dev/drydock/internal/config"
	"drydock.dev/drydock/remediations/engine"
	"drydock.dev/drydock/remediations/hosts"
)

// newHosts is how units on hosts are restarted; nil: it is not configured.
func newHosts(cfg *config.Config) (*hosts.Client, error) {
	h := cfg.Hosts
	if h == nil {
		return nil, nil
	}
	return hosts.New(hosts.Options{
		User: h.User, Port: h.Port, KeyFile: h.KeyFile, KnownHostsFile: h.KnownHostsFile, Sudo: h.Sudo, Timeout: h.Timeout,
		Units: append([]string{h.Kubelet, h.Containerd}, h.Units...),
	})
}

// addHosts adds what is done on the machines behind Nodes.
func addHosts(actuators map[string]engine.Actuator, cfg *config.Config, client *hosts.Client, clients kubernetes.Interface) {
	unit := hosts.Unit{Client: client, Nodes: clients.CoreV1().Nodes()}
	for _, t := range cfg.Hosts.AddressTypes {
		unit.Types = append(unit.Types, corev1.NodeAddressType(t))
	}
	actuators["restart-unit"] = unit
	unit.Name = cfg.Hosts.Kubelet
	actuators["restart-kubelet"] = unit
	unit.Name = cfg.Hosts.Containerd
	actuators["restart-containerd"] = unit
}
