package clusterapi

import "testing"

// With a MachineHealthCheck: the Machine is annotated, and Cluster API does the rest.
func TestAMachineIsReplacedAndItsPodRunsAgain(t *testing.T) {
	e := newEnv(t, "whole", true)
	e.App("web", nil)
	e.Bind("web", e.Nodes[0])
	e.ReplacedAndItsPodRunsAgain("web")
}

// Without one, by the conditions.
func TestALostAnswerLeavesOneRequest(t *testing.T) {
	newEnv(t, "lost", false).ALostAnswerLeavesOneRequest()
}

func TestKilledBetweenTheRequestAndItsAnswer(t *testing.T) {
	newEnv(t, "killed", true).KilledBetweenTheRequestAndItsAnswer()
}

func TestKilledBetweenTheIntentAndTheRequest(t *testing.T) {
	newEnv(t, "unsent", true).KilledBetweenTheIntentAndTheRequest()
}

func TestARefusedRequestChangesNothing(t *testing.T) {
	newEnv(t, "refused", true).ARefusedRequestChangesNothing()
}
