// Package providertest holds a provider of machines against the contract of engine.Actuator. Drydock's own providers pass it, and
// a provider that somebody else writes can be held against it in the same way:
//
//	func TestConformance(t *testing.T) {
//		providertest.Run(t, providertest.Provider{Start: start})
//	}
//
// Start begins a simulated other side with two machines, and a provider that speaks to it. For a provider that speaks HTTP, HTTP
// stands between the two and misbehaves: it cuts connections, answers late, with pages, redirects or bodies without an end.
// A provider of another protocol implements Wire itself.
//
// What the cases demand:
//
//   - Survey says what could only be refused, and changes nothing. No case ever changes another machine than the one it asks for.
//   - An outcome is "refused" only where the other side certainly did nothing, and "accepted" only where it said so. A fault
//     that looks the same whether the work was done or not is tried in both ways.
//   - One Act sends at most one request that changes something. mayStill is asked after everything else.
//   - At most once an attempt is the engine's: an intent that is on record is never acted on again, whatever the provider remembers. So a
//     provider that comes after a crash, at whichever request, does nothing by itself, and asks mayStill like the first. Where the other
//     side can tell one attempt from another, the same attempt again does not come to a second change either.
//   - No error, answer or log line shows a secret, breaks its line or has no bound, whatever the other side puts into its answers.
//   - What is wrong once (one 401, 403 or 5xx) spends no attempt for which certainly nothing was done, and neither the machine's next call
//     nor another machine's is refused for it. Between the intent and the change few answers are waited for: the other side may be slow.
//   - What Act would refuse for, Survey says before.
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
	// Start begins a world of its own for one case. A call must give up on a request that has no answer after the timeout.
	Start func(t testing.TB, timeout time.Duration) World
	// DoesNotApply has, for the name of a case or for either half of it, as of a Scene, a Stage or a Fault, why it does not apply to this provider.
	// The test of that name is not run, and the log has the reason.
	DoesNotApply map[string]string
	// Slow: its other side takes long, as a whole API server does. A third of the cases are run, others each time; all of them
	// where DRYDOCK_SOAK is set.
	Slow bool
	// AnswersBefore is how many answers an Act waits for before its change, where three are not enough to be sure that it still may.
	// While its other side is slow, the call is withheld then, and the step is held as ProviderUnreachable. Zero: three.
	AnswersBefore int
	// Outlives: a call whose request has left goes on by itself for as long as the timeout, to learn what became of it.
	Outlives bool
	// PerMachine: each machine has an other side of its own, for example a BMC. What that one answers never concerns the account of all.
	PerMachine bool
	// KeepsMachine: Survey keeps the other side's own name of the machine, and Act looks at that one again and at no other. A second
	// machine that could be meant, and came after the survey, is then not met, and must not be touched.
	KeepsMachine bool
	// PromisesNone: as remediations.Provider has it. No other provider may say that no machine is needed.
	PromisesNone bool
}

// World is a provider and its simulated other side.
type World struct {
	Actuator engine.Actuator
	// Again makes the provider anew, as a process does that comes after a crash: with nothing remembered, and the same other side. Close
	// ends these, too.
	Again func() engine.Actuator
	// Machine is well, and so is Neighbour. ID and NeighbourID are what the other side calls them.
	Machine, Neighbour engine.Machine
	ID, NeighbourID    string
	Wire               Wire
	// Changed names the machines for which the other side really did what it was asked for, by ID and in order.
	Changed func() []string
	// Set makes the scene true at the other side. It returns the machine to ask for.
	Set func(Scene) engine.Machine
	// Refuses are further states in which Act would refuse the machine, each made true by its function, which returns the machine to ask
	// for: Survey must say so before. Nil: the Scenes are all.
	Refuses map[string]func() engine.Machine
	// Stage takes an accepted replacement of Machine to a stage, and says which successors may be named there. It is needed
	// where the Actuator is an engine.Replacer.
	Stage func(Stage) (successors []string)
	// Secrets may show in no text. They are at least sixteen characters long.
	Secrets []string
	// Log returns what the provider has logged. Nil: it does not log.
	Log func() string
	// Close ends the other side, and what the test itself began.
	Close func()
}

// Wire is what stands between a provider and its other side.
type Wire interface {
	// Misbehave makes some of the requests that arrive from now on suffer the fault: count of them, beginning with the one of
	// that number, from 0. A negative count: all of them.
	Misbehave(first, count int, f Fault)
	// Requests are those that arrived, in order.
	Requests() []Request
	// Await returns true when a request that matches has arrived, and false when the context ends before.
	Await(ctx context.Context, match func(Request) bool) bool
	// Busy is how many requests have no answer yet.
	Busy() int
	// Strays is how many connections were made to the place that a redirect names.
	Strays() int
	// Overread says whether somebody read so much of an answer without an end that nobody may read on.
	Overread() bool
	// Connects says whether the order of connections and of calls of mayStill can be told, and how many connections there
	// were. Over plain TCP a connection can stand before its listener knows of it.
	Connects() (many int, reliable bool)
}

// Request is one request as it arrived at the other side.
type Request struct {
	Number int
	// Changes: it asks for something to be done to a machine.
	Changes bool
	// What is it, in words: for a person who reads a failure.
	What string
}

// Scene is a state of the other side in which a machine must not be touched.
type Scene string

// The scenes, all of them.
const (
	// NoMachine: the other side does not know the machine.
	NoMachine Scene = "no such machine"
	// TwoMachines: two machines could be meant.
	TwoMachines Scene = "two machines could be meant"
	// AnotherOfItsName: the machine is gone, and another one has its name.
	AnotherOfItsName Scene = "another machine has its name"
	// ItsIDIsAnothers: the ID by which the Node knows its machine is the ID of another node's machine now.
	ItsIDIsAnothers Scene = "its ID is another machine's"
)

// Scenes are all of them.
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

// Stages are all of them.
var Stages = []Stage{OldLingers, NewFirst, Holes, Nothing, OldGone, NameAgain, Whole}

// Wanted is a stage of a provider that promises no other machine, whose OldGone proves something: the old machine is gone, no new one
// is there, and something waits for one.
const Wanted Stage = "the old machine is gone and something waits for a new one"

// aCase is one test of the suite.
type aCase struct {
	name string
	run  func(t testing.TB, p Provider)
}

// names are the name of the case, of what it asks, and of what goes wrong.
func (c aCase) names() []string {
	what, wrong, _ := strings.Cut(c.name, ": ")
	return []string{c.name, what, wrong}
}

func cases() []aCase {
	return slices.Concat(plainCases(), identityCases(), lookCases(), changeCases(), onceCases(), crashCases(), contextCases(), replaceCases(), unwellCases())
}

// Run holds the provider against the contract. It watches goroutines, so it must not run beside other tests: the test that calls
// it is not parallel.
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

// sample is what is run of the cases: all, or every third where they take long, or every sixth where the tests are to be short.
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

// without says why the case does not apply, where that is so.
func (p Provider) without(c aCase) (why string, not bool) {
	for _, name := range c.names() {
		if why, not = p.DoesNotApply[name]; not {
			return why, true
		}
	}
	return "", false
}
