package remediations

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// TestSuccessorGoldens pins how a repair goes on whose Node is gone: n1 is the Node of the machine that came, if the
// provider says that it is. UPDATE=1 rewrites the outputs.
func TestSuccessorGoldens(t *testing.T) {
	for _, g := range goldensIn(t, "successor") {
		t.Run(g.name, func(t *testing.T) {
			got := render(t, successorOf(t, g))
			if os.Getenv("UPDATE") != "" {
				require.NoError(t, os.WriteFile(g.output, []byte(got), 0o644))
			}
			require.Equal(t, g.want(t), got)
			require.Equal(t, got, render(t, successorOf(t, g)))
		})
	}
}

func successorOf(t *testing.T, g golden) Decision {
	t.Helper()
	s := g.state(t)
	o := &s.Ledger.Orphans[0]
	require.True(t, o.Gone(s.Node))
	s.Journal.Record = &o.Record
	s.Node = SuccessorOf(o, s.Replacement, []*corev1.Node{bare("n2"), s.Node})
	return DecideSuccessor(s, o, noon)
}

// TestSameMachineIsNoSuccessor: a Node that was only deleted and registered again is the same machine.
func TestSameMachineIsNoSuccessor(t *testing.T) {
	o := &Orphan{Node: "n1", UID: "old", ProviderID: "civo://n1", Record: Record{Intent: &Intent{ID: "r1-2-1", At: noon}}}
	said := &Replacement{Asked: Asked{Intent: "r1-2-1", At: noon.Add(time.Second)}, Successors: []string{"civo://n1", "civo://n2"}}
	again, another := bare("n1"), bare("n2")
	require.True(t, o.Gone(again), "registered again, it is another Node")
	require.Nil(t, SuccessorOf(o, said, []*corev1.Node{again}))
	require.Equal(t, another, SuccessorOf(o, said, []*corev1.Node{again, another}))
	require.Nil(t, SuccessorOf(o, nil, []*corev1.Node{another}), "nobody said which machine it is")
	o.UID = string(again.UID)
	require.False(t, o.Gone(again))
	require.True(t, o.Gone(nil))
}

// TestReplacementOfARequestHasItsTime: a request for a remediation that stands in no policy has the step's own time.
func TestReplacementOfARequestHasItsTime(t *testing.T) {
	require.Equal(t, replace.Wait, replaceFor(nil, &Record{Step: StepRef{Name: "replace", Attempt: 1}}))
	p := &Policy{Plan: []Step{{Name: "replace", Wait: time.Hour}}}
	require.Equal(t, time.Hour, replaceFor(p, &Record{Step: StepRef{Name: "replace", Attempt: 1}}))
}
