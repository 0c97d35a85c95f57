// Package crash kills the real Drydock at each call that changes something, makes the API server
// fail, and stops and kills leaders. The promises of the package remediations must hold: an attempt
// reaches the provider at most once, no limit is exceeded at any time, and every repair ends with
// the outcome that fits the reboots that really happened.
//
// Without DRYDOCK_SOAK=1, the package runs only a sample of the crash points, and the short forms
// of the tests. The sample's seed is printed, and DRYDOCK_SEED sets it. With
// DRYDOCK_ROLLBACK=PROGRAM, that program, an older Drydock, is started after each crash.
package crash

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"drydock.dev/drydock/internal/lab"
	"drydock.dev/drydock/internal/soak"
	"drydock.dev/drydock/remediations"
)

// atOnce is how many tests run at the same time. They mostly wait.
const atOnce = "12"

func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	lab.Main(m, lab.Options{Components: lab.APIServerOnly, Alertmanagers: 1})
}

// site is a lab that several yards use.
type site struct {
	lab   *lab.Lab
	token string
}

var prepared = struct {
	sync.Mutex
	site
}{}

// shared is the package's lab.
func shared(t *testing.T) site {
	t.Helper()
	prepared.Lock()
	defer prepared.Unlock()
	l := lab.Shared(t)
	if prepared.lab == nil {
		prepared.site = prepare(t, l)
	}
	return prepared.site
}

// prepare builds Drydock for a lab and makes the lab's Watchdog fire for ever.
func prepare(t *testing.T, l *lab.Lab) site {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	token, err := l.PrepareDrydock(ctx)
	require.NoError(t, err)
	watchdog := func(ctx context.Context) error {
		return sendAlert(ctx, l.AlertmanagerURLs(), map[string]string{"alertname": "Watchdog"}, time.Now(), time.Now().Add(time.Minute))
	}
	require.NoError(t, watchdog(ctx))
	running, end := context.WithCancel(ctx)
	alertmanager := l.Process("alertmanager-0")
	go func() {
		<-alertmanager.Done()
		end()
	}()
	go func() { // like Prometheus, which sends a firing alert again and again
		for running.Err() == nil {
			_ = watchdog(running) // if one post is lost, the next one arrives
			<-time.After(500 * time.Millisecond)
		}
	}()
	return site{lab: l, token: token}
}

// seeded returns the test's random numbers, and prints how to get the same numbers again.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("DRYDOCK_SEED"); s != "" {
		var err error
		seed, err = strconv.ParseUint(s, 10, 64)
		require.NoError(t, err, "DRYDOCK_SEED")
	}
	t.Logf("DRYDOCK_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// sample is how many of the crash points run in `make e2e`.
const sample = 24

// golden is the file with all points at which the program is killed.
var golden = filepath.Join("testdata", "points.golden")

// TestCrashAtEveryStep first lists the calls of each story that change something. Then it plays the
// story again for each of these calls, and kills the program there: once before the call takes
// effect, and once after that and before the answer. It starts the program again, and the story
// must end as it should.
func TestCrashAtEveryStep(t *testing.T) {
	s, random := shared(t), seeded(t)
	lists := make([][]string, len(stories))
	t.Run("recording", func(t *testing.T) {
		for i, story := range stories {
			t.Run(story.name, func(t *testing.T) {
				t.Parallel()
				lists[i] = story.record(t, s)
			})
		}
	})
	var list strings.Builder
	type point struct {
		story
		name string
		when moment
	}
	var points []point
	for i, story := range stories {
		fmt.Fprintf(&list, "%s:\n", story.name)
		for _, name := range lists[i] {
			fmt.Fprintf(&list, "  %s\n", name)
			points = append(points, point{story, name, before}, point{story, name, after})
		}
	}
	t.Logf("the program is killed before and after each of these calls:\n%s", &list)
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
		require.NoError(t, os.WriteFile(golden, []byte(list.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), list.String(), "UPDATE=1 writes %s again", golden)

	random.Shuffle(len(points), func(i, j int) { points[i], points[j] = points[j], points[i] })
	if !soak.Whole() {
		points = points[:sample]
	}
	for _, p := range points {
		t.Run(fmt.Sprintf("%s/%s %s", p.story.name, p.when, p.name), func(t *testing.T) {
			t.Parallel()
			p.killedAt(t, s, p.name, p.when)
		})
	}
}

// record plays the story without a disturbance and lists what the program changed, in order. On a
// busy machine the last check before a call may be too late, and then the attempt is given back and
// made again. That is another story, so record then plays the story once more.
func (s story) record(t *testing.T, at site) (names []string) {
	for range 5 {
		names = s.recordOnce(t, at)
		if !slices.ContainsFunc(names, givenBack) {
			break
		}
	}
	return names
}

// givenBack reports whether a change's name means that an attempt is given back because its call
// was not made in time.
func givenBack(name string) bool {
	for _, reason := range []remediations.Reason{remediations.ReasonCallWithheld, remediations.ReasonBlind} {
		if strings.Contains(name, "held "+string(reason)) {
			return true
		}
	}
	return false
}

func (s story) recordOnce(t *testing.T, at site) []string {
	s.steady = true // steady, because the list must contain what the program changes without a disturbance
	y := newYard(t, at, s.options)
	var mu sync.Mutex
	var names []string
	y.on(func(c *call, when moment) lab.Verdict {
		// A Drydock that starts writes that it is blind only if it is in charge of the cluster
		// before an Alertmanager has answered. That would be another story.
		if c.name != "" && !strings.HasSuffix(c.name, " blind") && when == after && c.answer.StatusCode < 300 {
			mu.Lock()
			defer mu.Unlock()
			names = append(names, c.name)
		}
		return lab.Pass
	})
	y.start()
	y.sees()
	s.play(y)
	y.settled()
	mu.Lock()
	defer mu.Unlock()
	return inOrder(names)
}

// killedAt plays the story and kills the program at that point.
func (s story) killedAt(t *testing.T, at site, point string, when moment) {
	y := newYard(t, at, s.options)
	var once sync.Once
	killed := make(chan struct{})
	y.on(func(c *call, m moment) lab.Verdict {
		v := lab.Pass
		if c.name == point && m == when && (m == before || c.answer.StatusCode < 300) {
			once.Do(func() {
				y.replicas[0].Kill()
				close(killed)
				v = lab.Reset
			})
		}
		return v
	})
	y.start()
	y.sees()
	s.play(y)
	select {
	case <-killed:
	case <-time.After(lab.Patience):
		require.Failf(t, "it was not killed", "it never came to %q", point)
	}
}
