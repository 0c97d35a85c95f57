package clusterapi

import (
	"strings"
	"testing"

	"drydock.dev/drydock/test/owners"
)

// With a MachineHealthCheck, and a BMC whose reset does not help: the Machine is annotated, and
// Cluster API does the rest. The MachineHealthCheck is kept off for the reset alone, or the
// replacement would never come.
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

// The one whose answer is lost is requested without a MachineHealthCheck, by the conditions.
func TestAFaultLeavesOneRequest(t *testing.T) {
	owners.AFaultLeavesOneRequest(t, func(t *testing.T, name string) *owners.Env { return newEnv(t, name, name != "lost") })
}
