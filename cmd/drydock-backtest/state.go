package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"drydock.dev/drydock/internal/backtest"
	"drydock.dev/drydock/internal/backtest/history"
)

// backtest goes on from the state that an earlier run left, if there is one.
func (a *asked) backtest(
	ctx context.Context, data *history.Past, rules []history.RuleFile, from, until time.Time, configs []backtest.Named,
) (*backtest.Report, error) {
	if a.state == "" {
		return backtest.Backtest(ctx, data, from, until, configs...)
	}
	of, err := a.restsOn(rules)
	if err != nil {
		return nil, err
	}
	source, err := history.Carry(data, a.state, of, from, until)
	if err != nil {
		return nil, err
	}
	return backtest.Backtest(ctx, source, source.From(), until, configs...)
}

// restsOn are the sums of what a state rests on beside the data. Another version of Drydock may read the same data in another way, and which
// rules are evaluated depends on the configurations.
func (a *asked) restsOn(rules []history.RuleFile) (map[string]string, error) {
	info, _ := debug.ReadBuildInfo()
	of := map[string]string{"version of Drydock": thisBuild().Line(info)}
	for name, file := range map[string]string{
		"configuration": a.config, "configuration to compare with": a.compare, "configuration of Alertmanager": a.alertmanager,
	} {
		if file == "" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading the %s: %w", name, err)
		}
		of[name] = sum(string(text))
	}
	of["replica label"] = a.replica
	all := []string{fmt.Sprint(a.recorded)}
	for _, file := range rules {
		all = append(all, file.Name, string(file.Text))
	}
	of["set of rules"] = sum(all...)
	return of, nil
}

func sum(all ...string) string {
	h := sha256.New()
	for _, text := range all {
		_, _ = fmt.Fprintf(h, "%d %s\n", len(text), text)
	}
	return hex.EncodeToString(h.Sum(nil))
}
