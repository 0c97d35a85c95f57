// Package providertest tests a provider of machines against the contract of engine.Actuator.
// Drydock's own providers pass it, and other providers can be tested in the same way:
//
//	func TestConformance(t *testing.T) {
//		providertest.Run(t, providertest.Provider{Start: start})
//	}
//
// Start begins a simulated backend (the system that the provider calls) with two machines, and a
// provider that speaks to it. For a provider that speaks HTTP, the type HTTP stands between the two
// and misbehaves: it cuts connections, answers late, or answers with pages, redirects or endless
// bodies. A provider of another protocol implements Wire itself.
//
// What the cases demand:
//
//   - Survey reports in advance every reason why Act would refuse, and changes nothing. No
//     call ever changes another machine than the requested one.
//   - An outcome is "refused" only if the backend certainly did nothing, and "accepted" only if the
//     backend said so. Some faults look the same whether the work was done or not: each of them is
//     tried in both ways.
//   - One Act sends at most one request that changes something. It calls mayStill last, right
//     before that request.
//   - The engine ensures that an attempt is made at most once: it never acts again on an intent
//     that is on record, whatever the provider remembers. So a provider that starts after a crash
//     does nothing by itself, and calls mayStill like the first one. A backend that can distinguish
//     attempts does not make a second change for the same attempt either.
//   - No error, answer or log line shows a secret, contains a line break, or is unbounded, whatever
//     the backend puts into its answers.
//   - A single error (one 401, 403 or 5xx) does not spend an attempt if certainly nothing was done.
//     It does not make the provider refuse the next call for this or another machine. Between the
//     intent and the change the provider waits for few answers, because the backend may be slow.
//   - A call ends soon after its context has ended, and leaves no goroutine and no request behind.
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

// Provider describes the provider under test, and which parts of the contract apply to it.
type Provider struct {
	// Makes the provider and a simulated backend for one case. A call of the provider must give up
	// a request that has no answer after the timeout.
	Start func(t testing.TB, timeout time.Duration) World
	// Why cases do not apply to this provider. The key is the name of the case, or the part before
	// or after its colon. The log shows the reason.
	DoesNotApply map[string]string
	// The backend takes long, like a whole API server: only a random third of the cases is run,
	// unless DRYDOCK_SOAK is set.
	Slow bool
	// How many answers an Act waits for before its change. Zero means at most three. If a provider
	// needs more, its intent may become too old at a slow backend. The engine then does not make
	// the call, and holds the step for the reason ProviderUnreachable.
	AnswersBefore int
	// A call that has already sent a request may continue after its context has ended, and wait for
	// the result for at most the timeout.
	Outlives bool
	// Each machine has a backend of its own, for example a BMC. An error of one backend then never
	// counts against the account for all machines.
	PerMachine bool
	// Survey notes the backend's name of the machine, and Act uses only that name. Act does not
	// notice a second machine that fits the Node and appears after the survey, and must not touch
	// it.
	KeepsMachine bool
	// As in remediations.Provider: only such a provider may report that no new machine is needed.
	PromisesNone bool
	// The Actuator switches machines off and is an engine.PowerProver.
	PowersOff bool
}

// World is a provider together with its simulated backend.
type World struct {
	Actuator engine.Actuator
	// Makes a new provider for the same backend that remembers nothing, like a process after a
	// crash. Close also ends these providers.
	Again func() engine.Actuator
	// Two healthy machines, and the backend's names for them.
	Machine, Neighbour engine.Machine
	ID, NeighbourID    string
	Wire               Wire
	// The IDs of the machines that the backend really changed on request, in order.
	Changed func() []string
	// Puts the backend into the scene, and returns the machine to pass to Survey and Act.
	Set func(Scene) engine.Machine
	// Further states of the backend, by name, where Act must refuse the machine and Survey must
	// report that in advance. Each function sets its state and returns the machine. Nil means only
	// the Scenes.
	Refuses map[string]func() engine.Machine
	// Takes an accepted replacement of Machine to a stage, and returns the provider IDs of the new
	// machines that the provider may name then. Required if the Actuator is an engine.Replacer.
	Stage func(Stage) (successors []string)
	// Switches Machine on or off at the backend. Required if PowersOff is set.
	Power func(on bool)
	// They must not appear in any text of the provider. Each has at least sixteen characters.
	Secrets []string
	// What the provider has logged. Nil if it does not log.
	Log func() string
	// Ends the backend and everything that Start began.
	Close func()
}

// Wire is the connection between a provider and its backend. It injects faults and counts requests.
type Wire interface {
	// Misbehave injects the fault into count requests, from the request number first, counted from
	// 0. A negative count means all requests from there on.
	Misbehave(first, count int, f Fault)
	// Requests returns the requests that arrived, in order.
	Requests() []Request
	// Await waits for a request that matches. It returns false if the context ends before.
	Await(ctx context.Context, match func(Request) bool) bool
	// Busy returns how many requests have no answer yet.
	Busy() int
	// Strays returns how many connections were made to the address that a redirect names.
	Strays() int
	// Overread reports whether the provider read more of an endless answer than it should.
	Overread() bool
	// Connects returns how many connections the provider has made. Over plain TCP, reliable is
	// false: a connection may exist before its listener knows of it, so the number cannot be
	// compared with the time of a call of mayStill.
	Connects() (many int, reliable bool)
}

// Request is one request as it arrived at the backend.
type Request struct {
	Number int
	// The request asks for a change of a machine.
	Changes bool
	// Describes the request for a person who reads a test failure.
	What string
}

// Scene is a state of the backend that forbids any change of a machine.
type Scene string

// These are the scenes. Scenes lists all of them.
const (
	// NoMachine: the backend does not know the machine.
	NoMachine Scene = "no such machine"
	// TwoMachines: two machines of the backend fit the Node.
	TwoMachines Scene = "two machines could be meant"
	// AnotherOfItsName: the machine is gone, and another one has its name.
	AnotherOfItsName Scene = "another machine has its name"
	// ItsIDIsAnothers: the machine ID in the Node now belongs to another node's machine.
	ItsIDIsAnothers Scene = "its ID is another machine's"
)

// Scenes lists every Scene.
var Scenes = []Scene{NoMachine, TwoMachines, AnotherOfItsName, ItsIDIsAnothers}

// Stage is how far the replacement of a machine is at the backend.
type Stage string

// The stages of every provider. Only the last two prove that the machine was replaced.
const (
	// OldLingers: the old machine is still there, and there is no new one.
	OldLingers Stage = "the old machine is still there"
	// NewFirst: the new machine runs, and the old one is still there.
	NewFirst Stage = "the new machine is there before the old one is gone"
	// Holes: the backend's answer is incomplete. It lacks the old machine, and other machines that
	// exist.
	Holes Stage = "an answer with holes"
	// Nothing: the backend lists no machine at all.
	Nothing Stage = "no machines at all"
	// OldGone: the old machine is gone, and no new one is there.
	OldGone Stage = "the old machine is gone and no new one is there"
	// NameAgain: the old machine is gone, and a new one of the same name runs.
	NameAgain Stage = "a new machine of the same name"
	// Whole: the old machine is gone, and a new one of another name runs.
	Whole Stage = "a new machine"
)

// Stages lists every Stage.
var Stages = []Stage{OldLingers, NewFirst, Holes, Nothing, OldGone, NameAgain, Whole}

// Wanted is a further stage for a provider that promises no new machine: the old machine is gone,
// and something still waits for a new one. For such a provider, OldGone proves the end of the
// replacement and Wanted does not.
const Wanted Stage = "the old machine is gone and something waits for a new one"

type aCase struct {
	name string
	run  func(t testing.TB, p Provider)
}

// The keys of DoesNotApply that exclude the case: its whole name, the part before the colon, and
// the part after it.
func (c aCase) names() []string {
	what, wrong, _ := strings.Cut(c.name, ": ")
	return []string{c.name, what, wrong}
}

func cases() []aCase {
	return slices.Concat(plainCases(), identityCases(), lookCases(), changeCases(), onceCases(), crashCases(), contextCases(), replaceCases(), powerCases(), unwellCases())
}

// Run tests the provider against the contract. It checks for leaked goroutines, so the calling test
// must not run in parallel with other tests.
func Run(t *testing.T, p Provider) {
	t.Helper()
	t.Setenv("DRYDOCK_PROVIDERTEST", "runs alone") // Setenv makes a parallel test fail
	require.NotNil(t, p.Start, "the Provider has no Start")
	all := cases()
	for name, why := range p.DoesNotApply {
		require.NotEmpty(t, why, "DoesNotApply has no reason for %q", name)
		require.True(t, slices.ContainsFunc(all, func(c aCase) bool { return slices.Contains(c.names(), name) }), "DoesNotApply names %q, and there is no such case", name)
	}
	for _, c := range sample(t, p, all) {
		if why, not := p.without(c); not {
			t.Logf("%s: does not apply: %s", c.name, why)
			continue
		}
		t.Run(c.name, func(t *testing.T) { c.run(t, p) })
	}
}

// sample returns all cases, or every third if the provider is slow, or every sixth with -short.
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

// The result not is false if the case applies.
func (p Provider) without(c aCase) (why string, not bool) {
	for _, name := range c.names() {
		if why, not = p.DoesNotApply[name]; not {
			return why, true
		}
	}
	return "", false
}
