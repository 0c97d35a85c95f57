package main

const (
	envMutant = "DRYDOCK_MUTANT"       // the number of the mutant that is on
	envNotes  = "DRYDOCK_MUTANT_NOTES" // the file that takes the numbers of the mutants that matter
	envLimit  = "DRYDOCK_MUTANT_CPU"   // the limit of processor time, in seconds: then the kernel ends the tests
)

// This source is compiled into each package with mutants. A mutant matters to a test if the changed
// code would give another result at least once while the test runs.
const switchSource = `package mutants

import (
	"cmp"
	"os"
	"strconv"
	"sync/atomic"
	"syscall"
)

var (
	mutantOn, mutantNotes = mutantSwitch()
	mutantNoted           [MUTANTS]atomic.Bool
)

func mutantSwitch() (on int, notes *os.File) {
	on = -1
	if s := os.Getenv("` + envMutant + `"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			panic(err)
		}
		on = n
	}
	if s := os.Getenv("` + envNotes + `"); s != "" {
		file, err := os.OpenFile(s, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		notes = file
	}
	if s := os.Getenv("` + envLimit + `"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err == nil {
			err = syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: n, Max: n})
		}
		if err == nil {
			err = syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: 8 << 30, Max: 8 << 30})
		}
		if err != nil {
			panic(err)
		}
	}
	return on, notes
}

func mutantMatters(id int) {
	if mutantNotes != nil && !mutantNoted[id].Load() && mutantNoted[id].CompareAndSwap(false, true) {
		if _, err := mutantNotes.WriteString(strconv.Itoa(id) + "\n"); err != nil {
			panic(err)
		}
	}
}

func mutantIs(a, b int) bool { return mutantOn == a || mutantOn == b }

func mutantHolds(never, always int, holds bool) bool {
	switch mutantOn {
	case never:
		return false
	case always:
		return true
	}
	if holds {
		mutantMatters(never)
	} else {
		mutantMatters(always)
	}
	return holds
}

func mutantFlips(id int, holds bool) bool {
	mutantMatters(id)
	return holds != (mutantOn == id)
}

func mutantSide(id int, or, holds bool) bool {
	if holds == or {
		mutantMatters(id)
	}
	return holds != (mutantOn == id)
}

func mutantDrops(id int, without, holds bool) bool {
	if holds != without {
		mutantMatters(id)
	}
	return holds
}

func mutantNot(id int, holds bool) bool { return holds != (mutantOn == id) }

func mutantEqual[T cmp.Ordered](id int, a, b T) bool {
	if a == b {
		mutantMatters(id)
		return mutantOn == id
	}
	return false
}

func mutantLess[T cmp.Ordered](id int, a, b T) bool    { return mutantEqual(id, a, b) || a < b }
func mutantMore[T cmp.Ordered](id int, a, b T) bool    { return mutantEqual(id, a, b) || a > b }
func mutantAtMost[T cmp.Ordered](id int, a, b T) bool  { return a <= b && !mutantEqual(id, a, b) }
func mutantAtLeast[T cmp.Ordered](id int, a, b T) bool { return a >= b && !mutantEqual(id, a, b) }
`
