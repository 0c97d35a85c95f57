// Command mutants tests the tests of the safety core. It breaks the core on purpose, one small
// change (a mutant) at a time, and runs the tests with each. A mutant that no test notices is a
// guard without a test. The command prints the mutants that survive, and fails if explained.txt
// does not explain one of them.
//
// All mutants are compiled in at once. Each is behind a switch that the tests read from the
// environment. A first run without a mutant notes which tests reach which mutant. For each mutant
// only these tests run, the fast ones first, until one fails. Each processor (GOMAXPROCS) tries one
// mutant at a time.
//
//	go run ./test/mutants                   all mutants
//	go run ./test/mutants -sample 20        twenty of them, chosen by -seed
//	go run ./test/mutants -match guards     those whose names match
//	go run ./test/mutants -near             only the pure packages, each with its own tests: minutes
//	go run ./test/mutants -resume FILE      those that an earlier run, by its output, has not killed
//	go run ./test/mutants -list             the list of the mutants
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// The code that decides whether a side effect may happen, whether it has happened, whether it
// cured, and which changes by others collide with it.
var core = []string{
	"remediations/admission/*.go", "remediations/deadlines.go", "remediations/fleet/*.go", "remediations/intent.go",
	"remediations/kind.go", "remediations/ledger/*.go", "remediations/record_life.go", "remediations/signs/blindness.go", "remediations/signs/witness.go",
	"remediations/lifecycle/*.go", "remediations/targets/node/decide.go", "remediations/targets/node/last_look.go", "remediations/targets/node/left.go",
	"remediations/targets/node/proof.go", "remediations/targets/node/relapse.go", "remediations/targets/node/successor.go", "remediations/targets/node/survey.go",
	"remediations/targets/node/target.go", "remediations/targets/node/witness.go", "remediations/targets/*/guards.go", "remediations/rescue/apiserver/guards.go",
	"remediations/engine/end.go", "remediations/engine/call.go", "remediations/engine/kinds.go", "remediations/engine/node_change.go",
	"remediations/engine/policy_stops.go", "remediations/engine/node.go", "remediations/engine/shutdown.go", "remediations/engine/slots.go", "remediations/engine/targets.go", "remediations/engine/way.go",
}

// The tests of these packages run, in this order, after those of the mutated package. The tests of
// the pure packages are fast and kill most mutants.
var (
	pure = []string{
		"remediations", "remediations/signs", "remediations/ledger", "remediations/fleet", "remediations/lifecycle", "remediations/targets/node",
		"remediations/rescue/apiserver", "remediations/targets/sidecar", "remediations/targets/location", "remediations/admission",
	}
	loops = []string{"remediations/rescue", "remediations/engine"}
)

const explainedFile = "test/mutants/explained.txt"

// The flag -near: only the pure packages are mutated, and only the tests of the mutated package
// run.
var near bool

// The tests of these packages count as tests of another package: those of the kinds of targets test
// the lifecycle.
var nearBy = map[string][]string{
	"remediations/lifecycle":        {"remediations", "remediations/targets/node", "remediations/targets/location", "remediations/targets/sidecar"},
	"remediations/targets/location": {"remediations", "remediations/lifecycle"},
	"remediations/targets/node":     {"remediations", "remediations/lifecycle"},
}

// The most processor time that a test of a package in nearBy may use with -near.
const nearFor = time.Second

// The flag -timeout, which is added to the time limit of a test run. Some tests sleep or wait
// without using the processor.
var waiting = 5 * time.Minute

func main() {
	sample := flag.Int("sample", 0, "how many mutants are tried; 0: all")
	seed := flag.Uint64("seed", 1, "which ones a sample draws")
	match := flag.String("match", "", "try only the mutants whose names match this regular expression")
	resume := flag.String("resume", "", "the output of an earlier run of the same code: what that run killed is not tried again")
	list := flag.Bool("list", false, "print the mutants, and try none")
	flag.BoolVar(&near, "near", false, "change only the pure packages, and run only the tests of the changed one; what survives them, tests of the engine may kill")
	flag.DurationVar(&waiting, "timeout", waiting, "how long the tests of one mutant may wait")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *sample, *seed, *match, *resume, *list); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, sample int, seed uint64, match, resume string, list bool) error {
	all, err := mutants(core)
	if err != nil {
		return err
	}
	only, err := regexp.Compile(match)
	if err != nil {
		return fmt.Errorf("-match: %w", err)
	}
	done, err := killedIn(resume)
	if err != nil {
		return err
	}
	var chosen []int
	for i, m := range all {
		if only.MatchString(m.name()) && !strings.Contains(done, " "+m.String()+" by ") && (!near || !slices.Contains(loops, path.Dir(m.file))) {
			chosen = append(chosen, i)
		}
	}
	if sample > 0 && sample < len(chosen) {
		random := rand.New(rand.NewPCG(seed, 0))
		random.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		chosen = chosen[:sample]
	}
	if list {
		for _, i := range chosen {
			fmt.Println(all[i])
		}
		return nil
	}
	explained, err := explanations(explainedFile)
	if err != nil {
		return err
	}
	for name := range explained {
		if !slices.ContainsFunc(all, func(m mutant) bool { return m.name() == name }) {
			return fmt.Errorf("%s explains a mutant that is not there (any more): %s; remove the line", explainedFile, name)
		}
	}
	dir, err := os.MkdirTemp("", "drydock-mutants-")
	if err != nil {
		return fmt.Errorf("creating a folder for the mutants: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	return tryAll(ctx, all, chosen, explained, dir)
}

type verdict string

const (
	killed   verdict = "killed  "
	late     verdict = "TIMEOUT "
	survived verdict = "SURVIVED"
)

func tryAll(ctx context.Context, all []mutant, chosen []int, explained map[string]string, dir string) error {
	overlay, err := instrument(all, dir)
	if err != nil {
		return err
	}
	var suites []*suite
	folders := slices.Concat(pure, loops)
	if near {
		folders = slices.DeleteFunc(slices.Clone(pure), func(folder string) bool {
			return !slices.ContainsFunc(chosen, func(id int) bool { return isNear(folder, all[id]) })
		})
	}
	for _, folder := range folders {
		s, err := compile(ctx, folder, overlay, dir)
		if err != nil {
			return err
		}
		most := time.Duration(0)
		if near && !slices.ContainsFunc(chosen, func(id int) bool { return path.Dir(all[id].file) == folder }) {
			most = nearFor
		}
		if err := s.measure(ctx, most); err != nil {
			return err
		}
		fmt.Printf("%s: %d tests pass without a mutant\n", folder, len(s.tests))
		suites = append(suites, s)
	}
	counts, unexplained, done := map[string]int{}, 0, 0
	var printing sync.Mutex
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	for _, id := range chosen {
		work.Go(func() error {
			// For an explained mutant, which no test can notice, only the near tests run: all tests
			// would only take time.
			v, by, err := try(ctx, inOrder(suites, all[id], near || explained[all[id].name()] != ""), id)
			if err != nil {
				return err
			}
			printing.Lock()
			defer printing.Unlock()
			why := " by " + by
			if v == survived {
				why = ": " + explained[all[id].name()]
				if explained[all[id].name()] == "" {
					unexplained++
					why = ": NOT EXPLAINED"
				}
			}
			folder, _, _ := strings.Cut(by, " ")
			counts[string(v)+folder]++
			done++
			fmt.Printf("[%d/%d] %s %s%s\n", done, len(chosen), v, all[id], why)
			return nil
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	fmt.Printf("%d mutants: ", len(chosen))
	for _, folder := range folders {
		fmt.Printf("%d killed and %d timed out by the tests of %s, ", counts[string(killed)+folder], counts[string(late)+folder], folder)
	}
	fmt.Printf("%d survived\n", counts[string(survived)])
	if unexplained > 0 {
		return fmt.Errorf("%d mutants survived without an explanation; write a test that notices each, or say in %s why no test can", unexplained, explainedFile)
	}
	return nil
}

// isNear reports whether the folder's tests are those of the changed package.
func isNear(folder string, m mutant) bool {
	own := path.Dir(m.file)
	return folder == own || slices.Contains(nearBy[own], folder)
}

// The suite of the mutated package comes first. nearAlone leaves out packages that are not near,
// and slow tests of other packages.
func inOrder(suites []*suite, m mutant, nearAlone bool) (out []*suite) {
	for _, s := range suites {
		switch {
		case s.folder == path.Dir(m.file):
			out = slices.Insert(out, 0, s)
		case !nearAlone:
			out = append(out, s)
		case isNear(s.folder, m):
			out = append(out, s.within(nearFor))
		}
	}
	return out
}

func killedIn(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("-resume: %w", err)
	}
	var out strings.Builder
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "] "+string(killed)+" ") {
			out.WriteString(line)
		}
	}
	return out.String(), nil
}

// The key is a mutant's name. A line of the file has a name, a tab and the reason.
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
