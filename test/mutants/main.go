// Command mutants breaks the safety core on purpose, one small change at a time, and runs the core's tests on each: a change
// that no test notices is a guard that nobody guards. It prints those that survive, and fails where one is not explained
// in explained.txt.
//
//	go run ./test/mutants               all of them, which takes hours
//	go run ./test/mutants -sample 20    twenty of them, drawn by -seed
//	go run ./test/mutants -list         what would be changed
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// core is what is changed: whatever decides that a side effect may happen, that it happened once, and that it cured.
var core = []string{
	"remediations/breaker.go", "remediations/decide.go", "remediations/fleet.go", "remediations/guards*.go", "remediations/last_look*.go",
	"remediations/ledger*.go", "remediations/proof.go", "remediations/successor.go", "remediations/survey.go", "remediations/witness*.go",
	"remediations/engine/finish.go", "remediations/engine/issue.go",
}

// packages are tested in this order: the pure core is fast and kills most.
var packages = []string{"./remediations", "./remediations/engine"}

const explainedFile = "test/mutants/explained.txt"

func main() {
	sample := flag.Int("sample", 0, "how many mutants are tried; 0: all")
	seed := flag.Uint64("seed", 1, "which ones a sample draws")
	list := flag.Bool("list", false, "print the mutants, and try none")
	timeout := flag.Duration("timeout", 5*time.Minute, "how long the tests of one mutant may take; a mutant that hangs is noticed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *sample, *seed, *list, *timeout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, sample int, seed uint64, list bool, timeout time.Duration) error {
	all, err := mutants(core)
	if err != nil {
		return err
	}
	if sample > 0 && sample < len(all) {
		random := rand.New(rand.NewPCG(seed, 0))
		random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:sample]
	}
	if list {
		for _, m := range all {
			fmt.Println(m)
		}
		return nil
	}
	explained, err := explanations(explainedFile)
	if err != nil {
		return err
	}
	if err := unchanged(ctx, timeout); err != nil {
		return err
	}
	counts := map[verdict]int{}
	unexplained := 0
	for i, m := range all {
		v, err := m.try(ctx, timeout)
		if err != nil {
			return err
		}
		counts[v]++
		why := ""
		if v == survived {
			if why = explained[m.name()]; why == "" {
				unexplained++
				why = "NOT EXPLAINED"
			}
			why = ": " + why
		}
		fmt.Printf("[%d/%d] %s %s%s\n", i+1, len(all), v, m, why)
	}
	fmt.Printf("%d mutants: %d killed, %d survived, %d did not compile\n", len(all), counts[killed], counts[survived], counts[broken])
	if unexplained > 0 {
		return fmt.Errorf("%d mutants survived without an explanation; write a test that notices each, or say in %s why no test can", unexplained, explainedFile)
	}
	return nil
}

// unchanged runs the tests of the code as it is: where they fail by themselves they tell nothing of mutants.
func unchanged(ctx context.Context, timeout time.Duration) error {
	for _, p := range packages {
		if passed, out, err := test(ctx, "", p, timeout); err != nil {
			return err
		} else if !passed {
			return fmt.Errorf("the tests of %s fail without any change:\n%s", p, out)
		}
	}
	return nil
}

// verdict is what became of a mutant.
type verdict string

const (
	killed   verdict = "killed  "
	survived verdict = "SURVIVED"
	broken   verdict = "no build"
)

// try tests the mutant. The file in the work tree stays as it is: the compiler is given another one in its place.
func (m mutant) try(ctx context.Context, timeout time.Duration) (verdict, error) {
	dir, err := os.MkdirTemp("", "drydock-mutant-")
	if err != nil {
		return "", fmt.Errorf("making a folder for a mutant: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", fmt.Errorf("finding %s: %w", m.file, err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: changed}})
	if err != nil {
		return "", fmt.Errorf("writing an overlay for %s: %w", m.file, err)
	}
	if err := errors.Join(os.WriteFile(changed, m.apply(), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return "", fmt.Errorf("writing a mutant of %s: %w", m.file, err)
	}
	for _, p := range packages {
		passed, out, err := test(ctx, overlay, p, timeout)
		switch {
		case err != nil:
			return "", err
		case strings.Contains(out, "[build failed]"):
			return broken, nil
		case !passed:
			return killed, nil
		}
	}
	return survived, nil
}

func test(ctx context.Context, overlay, pkg string, timeout time.Duration) (passed bool, out string, err error) {
	args := []string{"test", "-count=1", "-failfast", "-vet=off", "-timeout", timeout.String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	text, err := exec.CommandContext(ctx, "go", append(args, pkg)...).CombinedOutput()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, "", errors.New("interrupted")
	case errors.As(err, &failed):
		return false, string(text), nil
	case err != nil:
		return false, "", fmt.Errorf("running go test: %w", err)
	}
	return true, string(text), nil
}

// explanations are why mutants survive rightly, by their names: a line is a name, a tab and the reason.
func explanations(file string) (map[string]string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading why mutants survive: %w", err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, why, ok := strings.Cut(line, "\t")
		if !ok || strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("%s: the line %q has no reason; write the mutant's name, a tab and the reason", file, line)
		}
		out[name] = strings.TrimSpace(why)
	}
	return out, nil
}

// mutants are those of all files that the patterns name, in the order of the files.
func mutants(patterns []string) ([]mutant, error) {
	var all []mutant
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return nil, fmt.Errorf("looking for %s: %w", pattern, err)
		}
		files = slices.DeleteFunc(files, func(f string) bool { return strings.HasSuffix(f, "_test.go") })
		if len(files) == 0 {
			return nil, fmt.Errorf("there is no file %s here; start it in the folder of go.mod", pattern)
		}
		for _, f := range files {
			found, err := mutantsOf(f)
			if err != nil {
				return nil, err
			}
			all = append(all, found...)
		}
	}
	return all, nil
}
