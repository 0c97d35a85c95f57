// Package providertest tests a provider of machines against the contract of engine.Actuator.
// Drydock's own providers pass it, and other providers can be tested in the same way:
//
//	func TestConformance(t *testing.T) {
//		providertest.Run(t, providertest.Provider{Start: start})
//	}
//
// Start begins a simulated other side with two machines, and a provider that speaks to it. For a
// provider that speaks HTTP, HTTP stands between the two and misbehaves: it cuts connections,
// answers late, or answers with pages, redirects or endless bodies. A provider of another protocol
// implements Wire itself.
//
// What the cases demand:
//
//   - Survey reports what Act would only refuse, and changes nothing. No case ever changes another
//     machine than the requested one.
//   - An outcome is "refused" only if the other side certainly did nothing, and "accepted" only if
//     the other side said so. A fault that looks the same whether the work was done or not is tried
//     in both ways.
//   - One Act sends at most one request that changes something. It calls mayStill after everything
//     else.
//   - The engine ensures that an attempt is made at most once: it never acts again on an intent
//     that is on record, whatever the provider remembers. So a provider that starts after a crash,
//     at any request, does nothing by itself, and calls mayStill like the first. If the other side
//     can distinguish attempts, the same attempt again does not lead to a second change either.
//   - No error, answer or log line shows a secret, breaks its line or has no bound, whatever the
//     other side puts into its answers.
//   - A single error (one 401, 403 or 5xx) does not spend an attempt if certainly nothing was done.
//     It does not make the provider refuse the machine's next call, or another machine's. Between
//     the intent and the change the provider waits for few answers: the other side may be slow.
//   - Survey reports in advance what Act would refuse for.
//   - A call ends soon after its context, and leaves no goroutine and no request behind.
package providertest

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/soak"
	"drydock.dev/drydock/remediations/engine"
)

// Provider describes a provider under test.
type Provider struct {
	// Start begins a new world for one case. A call must give up on a request that has no answer
	// after the timeout.
	Start func(t testing.TB, timeout time.Duration) World
	// DoesNotApply has the reasons why cases do not apply to this provider. The key is the name of
	// the case or of either half of it, for example of a Scene, a Stage or a Fault. The test of
	// that name is not run, and the log has the reason.
	DoesNotApply map[string]string
	// Slow: its other side takes long, like a whole API server. A third of the cases are run,
	// others each time; all of them if DRYDOCK_SOAK is set.
	Slow bool
	// AnswersBefore is how many answers an Act waits for before its change, if it needs more than
	// three to be certain that it still may. While its other side is slow, the call is then
	// withheld, and the step is held as ProviderUnreachable. Zero: three.
	AnswersBefore int
	// Outlives: a call whose request has left continues by itself for as long as the timeout, to
	// learn the result.
	Outlives bool
	// PerMachine: each machine has an other side of its own, for example a BMC. The answer of that
	// one never concerns the account of all.
	PerMachine bool
	// KeepsMachine: Survey keeps the other side's own name of the machine, and Act looks only at
	// the machine of that name. If a second machine that could be meant appears after the survey,
	// Act does not see it, and must not touch it.
	KeepsMachine bool
	// PromisesNone: as remediations.Provider has it. No other provider may report that no machine
	// is needed.
	PromisesNone bool
	// PowersOff: the Actuator switches machines off and is an engine.PowerProver.
	PowersOff bool
}

// World is a provider and its simulated other side.
type World struct {
	Actuator engine.Actuator
	// Again makes a new provider, like a process after a crash: it remembers nothing, and has the
	// same other side. Close ends these providers, too.
	Again func() engine.Actuator
	// Machine and Neighbour are healthy. ID and NeighbourID are the other side's names for them.
	Machine, Neighbour engine.Machine
	ID, NeighbourID    string
	Wire               Wire
	// Changed returns the machines that the other side really changed as requested, by ID and in
	// order.
	Changed func() []string
	// Set makes the scene true at the other side. It returns the machine for the request.
	Set func(Scene) engine.Machine
	// Refuses are further states that would make Act refuse the machine. Each function makes its
	// state true and returns the machine for the request: Survey must report the refusal in
	// advance. Nil: there are only the Scenes.
	Refuses map[string]func() engine.Machine
	// Stage takes an accepted replacement of Machine to a stage, and returns the successors that
	// may be named there. It is required if the Actuator is an engine.Replacer.
	Stage func(Stage) (successors []string)
	// Power switches Machine on or off at the other side. It is required if the provider PowersOff.
	Power func(on bool)
	// Secrets must appear in no text. They are at least sixteen characters long.
	Secrets []string
	// Log returns what the provider has logged. Nil: it does not log.
	Log func() string
	// Close ends the other side, and everything that the test itself began.
	Close func()
}

// Wire stands between a provider and its other side.
type Wire interface {
	// Misbehave makes some of the next requests suffer the fault: count of them, beginning with the
	// one of that number, from 0. A negative count: all of them.
	Misbehave(first, count int, f Fault)
	// Requests returns the requests that arrived, in order.
	Requests() []Request
	// Await returns true when a request that matches has arrived, and false when the context ends
	// before.
	Await(ctx context.Context, match func(Request) bool) bool
	// Busy returns how many requests have no answer yet.
	Busy() int
	// Strays returns how many connections were made to the address that a redirect names.
	Strays() int
	// Overread reports whether the provider read more of an endless answer than is allowed.
	Overread() bool
	// Connects returns how many connections there were, and whether the order of connections and of
	// calls of mayStill can be determined. Over plain TCP a connection can exist before its
	// listener knows of it.
	Connects() (many int, reliable bool)
}

// Request is one request as it arrived at the other side.
type Request struct {
	Number int
	// Changes: it requests a change of a machine.
	Changes bool
	// What describes the request for a person who reads a failure.
	What string
}

// Scene is a state of the other side that forbids any change of a machine.
type Scene string

// The scenes, all of them.
const (
	// NoMachine: the other side does not know the machine.
	NoMachine Scene = "no such machine"
	// TwoMachines: two machines could be meant.
	TwoMachines Scene = "two machines could be meant"
	// AnotherOfItsName: the machine is gone, and another one has its name.
	AnotherOfItsName Scene = "another machine has its name"
	// ItsIDIsAnothers: the machine ID in the Node now belongs to another node's machine.
	ItsIDIsAnothers Scene = "its ID is another machine's"
)

// Scenes are all scenes.
var Scenes = []Scene{NoMachine, TwoMachines, AnotherOfItsName, ItsIDIsAnothers}

// Stage is how far the replacement of a machine is at the other side.
type Stage string

// The stages of every provider. Only the last two prove something.
const (
	// OldLingers: the old machine is still there, and nothing else.
	OldLingers Stage = "the old machine is still there"
	// NewFirst: the new machine runs, and the old one is still there.
	NewFirst Stage = "the new machine is there before the old one is gone"
	// Holes: the other side's answer lacks the old machine, and others that must be there.
	Holes Stage = "an answer with holes"
	// Nothing: the other side knows no machines at all.
	Nothing Stage = "no machines at all"
	// OldGone: the old machine is gone, and no new one is there.
	OldGone Stage = "the old machine is gone and no new one is there"
	// NameAgain: the old machine is gone, and a new one of the same name runs.
	NameAgain Stage = "a new machine of the same name"
	// Whole: the old machine is gone, and a new one of another name runs.
	Whole Stage = "a new machine"
)

// Stages are all stages.
var Stages = []Stage{OldLingers, NewFirst, Holes, Nothing, OldGone, NameAgain, Whole}

// Wanted is a stage of a provider that promises no other machine: its OldGone proves something. The
// old machine is gone, no new one is there, and something waits for one.
const Wanted Stage = "the old machine is gone and something waits for a new one"

// aCase is one test of the suite.
type aCase struct {
	name string
	run  func(t testing.TB, p Provider)
}

// names are the names of the case, of its request, and of its fault.
func (c aCase) names() []string {
	what, wrong, _ := strings.Cut(c.name, ": ")
	return []string{c.name, what, wrong}
}

func cases() []aCase {
	return slices.Concat(plainCases(), identityCases(), lookCases(), changeCases(), onceCases(), crashCases(), contextCases(), replaceCases(), powerCases(), unwellCases())
}

// Run tests the provider against the contract. It watches goroutines, so it must not run beside
// other tests: the test that calls it is not parallel.
func Run(t *testing.T, p Provider) {
	t.Helper()
	t.Setenv("DRYDOCK_PROVIDERTEST", "runs alone") // fails in a parallel test
	require.NotNil(t, p.Start, "a provider without Start")
	all := cases()
	for name, why := range p.DoesNotApply {
		require.NotEmpty(t, why, "no reason why %q does not apply", name)
		require.True(t, slices.ContainsFunc(all, func(c aCase) bool { return slices.Contains(c.names(), name) }), "there is no case %q", name)
	}
	for _, c := range sample(t, p, all) {
		if why, not := p.without(c); not {
			t.Logf("%s: does not apply: %s", c.name, why)
			continue
		}
		t.Run(c.name, func(t *testing.T) { c.run(t, p) })
	}
}

// sample returns the cases to run: all, or every third if they take long, or every sixth in short
// mode.
func sample(t *testing.T, p Provider, all []aCase) []aCase {
	one := 1
	switch {
	case testing.Short():
		one = 6
	case p.Slow && !soak.Whole():
		one = 3
	}
	first := rand.IntN(one)
	if one > 1 {
		t.Logf("a sample: one case in %d, beginning with number %d", one, first)
	}
	var some []aCase
	for i := first; i < len(all); i += one {
		some = append(some, all[i])
	}
	return some
}

// without returns why the case does not apply, if it does not.
func (p Provider) without(c aCase) (why string, not bool) {
	for _, name := range c.names() {
		if why, not = p.DoesNotApply[name]; not {
			return why, true
		}
	}
	return "", false
}
