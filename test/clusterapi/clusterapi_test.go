package clusterapi

import (
	"strings"
	"testing"

	"drydock.dev/drydock/test/owners"
)

// The tests use a MachineHealthCheck, and a BMC whose reset does not help. Drydock annotates the
// Machine, and Cluster API does the rest. Drydock keeps the MachineHealthCheck away from the
// Machine only during the reset, because the replacement needs it afterwards.
func TestAMachineIsReplacedAndItsPodRunsAgain(t *testing.T) {
	e := newEnv(t, "whole", true)
	e.App("web", nil)
	e.Bind("web", e.Nodes[0])
	replaced := e.Asked
	e.Asked = func(attempt string) []string {
		return append(replaced(attempt), kept(strings.TrimSuffix(attempt, "-1-1")+"-0-1"))
	}
	e.ReplacedWhereNoRebootHelps("web")
}

// The request whose answer is lost is made without a MachineHealthCheck, by setting conditions.
func TestAFaultLeavesOneRequest(t *testing.T) {
	owners.AFaultLeavesOneRequest(t, func(t *testing.T, name string) *owners.Env { return newEnv(t, name, name != "lost") })
}
