package clusterapi

import (
	"testing"

	"drydock.dev/drydock/test/owners"
)

// With a MachineHealthCheck, and a BMC whose reset does not help: the Machine is annotated, and Cluster API does the rest.
func TestAMachineIsReplacedAndItsPodRunsAgain(t *testing.T) {
	e := newEnv(t, "whole", true)
	e.App("web", nil)
	e.Bind("web", e.Nodes[0])
	e.ReplacedWhereNoRebootHelps("web")
}

// The one whose answer is lost is asked for without a MachineHealthCheck, by the conditions.
func TestAFaultLeavesOneRequest(t *testing.T) {
	owners.AFaultLeavesOneRequest(t, func(t *testing.T, name string) *owners.Env { return newEnv(t, name, name != "lost") })
}
