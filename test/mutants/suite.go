package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The compiled tests of one package, together with all mutants.
type suite struct {
	folder, program string
	tests           []testCase
}

// The results are those of a run without a mutant.
type testCase struct {
	name    string
	cost    time.Duration // the processor time that it used
	matters map[int]bool  // the mutants that would change the result of an expression that the test evaluates
}

// With these flags rapid does not minimize failures, does not write into the work tree, and draws
// the same cases each time.
var fixed = []string{
	"-test.count=1", "-test.failfast", "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=1ns",
}

func compile(ctx context.Context, folder, overlay, dir string) (*suite, error) {
	program := filepath.Join(dir, filepath.Base(folder)+".test")
	args := []string{"test", "-c", "-vet=off", "-overlay", overlay, "-o", program, "./" + folder}
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling the mutants of %s: %w\n%s", folder, err, out)
	}
	return &suite{folder: folder, program: program}, nil
}

// Each test runs by itself without a mutant. If one fails, the command ends, because such a test
// shows nothing about mutants. A test that costs more than most is left out. 0 means no limit.
func (s *suite) measure(ctx context.Context, most time.Duration) error {
	out, err := exec.CommandContext(ctx, s.program, "-test.list", "^(Test|Fuzz|Example)").CombinedOutput()
	if err != nil {
		return fmt.Errorf("listing the tests of %s: %w\n%s", s.folder, err, out)
	}
	notes := s.program + ".notes"
	for name := range strings.Lines(string(out)) {
		t := testCase{name: strings.TrimSpace(name), matters: map[int]bool{}}
		if err := os.RemoveAll(notes); err != nil {
			return fmt.Errorf("removing the notes of a test: %w", err)
		}
		r, err := s.run(ctx, []string{t.name}, most, envNotes+"="+notes)
		if err != nil {
			return err
		}
		if r.late && most > 0 {
			continue
		}
		if r.failed {
			return fmt.Errorf("%s in %s fails without any mutant:\n%s", t.name, s.folder, r.out)
		}
		t.cost = r.cost
		text, err := os.ReadFile(notes)
		if err != nil {
			return fmt.Errorf("reading which mutants matter to %s: %w", t.name, err)
		}
		for line := range strings.Lines(string(text)) {
			n, err := strconv.Atoi(strings.TrimSpace(line))
			if err != nil {
				return fmt.Errorf("reading which mutants matter to %s: %w", t.name, err)
			}
			t.matters[n] = true
		}
		s.tests = append(s.tests, t)
	}
	return nil
}

func (s *suite) within(most time.Duration) *suite {
	out := &suite{folder: s.folder, program: s.program}
	for _, t := range s.tests {
		if t.cost <= most {
			out.tests = append(out.tests, t)
		}
	}
	return out
}

type result struct {
	failed, late bool
	cost         time.Duration
	out          []byte
}

// The limit is processor time, so that other work on the machine does not kill a mutant. Tests that
// wait for something that never happens end after the time of -timeout.
func (s *suite) run(ctx context.Context, names []string, limit time.Duration, env ...string) (result, error) {
	args := append([]string{
		"-test.run", "^(" + strings.Join(names, "|") + ")$", "-test.timeout", (waiting + 20*limit).String(),
	}, fixed...)
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Dir = s.folder
	cmd.Env = append(append(os.Environ(), "GOMAXPROCS=1"), env...) // one processor, because the limit is processor time
	if limit > 0 {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", envLimit, int(limit.Seconds())))
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var failed *exec.ExitError
	if ctx.Err() != nil {
		return result{}, errors.New("interrupted")
	} else if err != nil && !errors.As(err, &failed) {
		return result{}, fmt.Errorf("running the tests of %s: %w", s.folder, err)
	}
	return result{
		failed: err != nil,
		late:   err != nil && (failed.ExitCode() < 0 || bytes.Contains(out.Bytes(), []byte("panic: test timed out"))),
		cost:   cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
		out:    out.Bytes(),
	}, nil
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// Upper limits of the cost of a test. The tests of all suites run round by round, so no expensive
// test runs before a cheap one.
var rounds = []time.Duration{100 * time.Millisecond, time.Second, time.Hour}

// Only the tests that reach the mutant run, the fast ones first, until one fails.
func try(ctx context.Context, suites []*suite, id int) (v verdict, by string, err error) {
	least := time.Duration(-1)
	for _, most := range rounds {
		for _, s := range suites {
			if v, by, err = s.try(ctx, id, least, most); err != nil || v != survived {
				return v, by, err
			}
		}
		least = most
	}
	return survived, "", nil
}

func (s *suite) try(ctx context.Context, id int, least, most time.Duration) (v verdict, by string, err error) {
	var names []string
	var cost time.Duration
	for _, t := range s.tests {
		if t.matters[id] && t.cost > least && t.cost <= most {
			names, cost = append(names, t.name), cost+t.cost
		}
	}
	if len(names) == 0 {
		return survived, "", nil
	}
	r, err := s.run(ctx, names, 10*cost+5*time.Second, envMutant+"="+strconv.Itoa(id))
	if err != nil {
		return "", "", err
	}
	if !r.failed {
		return survived, "", nil
	}
	v, by = killed, "a panic"
	if r.late {
		v = late
	}
	if found := failure.FindAllSubmatch(r.out, -1); len(found) > 0 {
		by = string(found[len(found)-1][1])
	}
	return v, s.folder + " " + by, nil
}
