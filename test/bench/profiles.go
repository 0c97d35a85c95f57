package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

func (y *yard) profile(part string) error {
	if y.profiles == "" {
		return nil
	}
	for _, kind := range []string{"heap", "allocs", "mutex"} {
		if err := y.keep(kind, part+"-"+kind); err != nil {
			return err
		}
	}
	return nil
}

// Only one CPU profile can run at a time, so it first waits for the previous one.
func (y *yard) profileWhile(part string, seconds int) {
	if y.profiles == "" {
		return
	}
	y.profiling.Wait()
	y.profiling.Go(func() {
		if err := y.keep(fmt.Sprintf("profile?seconds=%d", seconds), part+"-cpu"); err != nil {
			fmt.Println("         no profile:", err)
		}
	})
}

func (y *yard) keep(kind, name string) error {
	web := &http.Client{Timeout: 90 * time.Second}
	res, err := web.Get("http://" + y.pprof + "/debug/pprof/" + kind) //nolint:noctx // the client bounds the time
	if err != nil {
		return fmt.Errorf("taking a profile: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("taking a profile: %s", res.Status)
	}
	if err := os.MkdirAll(y.profiles, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(y.profiles, fmt.Sprintf("%d-%s.pb.gz", y.fleet.size, name)))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	_, err = f.ReadFrom(res.Body)
	return err
}
