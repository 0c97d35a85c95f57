package karpenter

import (
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

type budget struct {
	Nodes    string   `json:"nodes"`
	Reasons  []string `json:"reasons"`
	Schedule string   `json:"schedule"`
	Duration string   `json:"duration"`
}

func (b budget) String() string {
	said := b.Nodes
	if len(b.Reasons) > 0 {
		said += " for " + strings.Join(b.Reasons, ", ")
	}
	if b.Schedule != "" {
		said += fmt.Sprintf(" from %q for %s", b.Schedule, b.Duration)
	}
	return said
}

// forbids reports whether the budget allows no disruption at all now, for any reason. With a
// schedule (in UTC), it is active for its duration from each time of the schedule. The parser and
// the comparison are the same as Karpenter's (pkg/apis/v1/nodepool.go IsActive).
func (b budget) forbids(now time.Time) (bool, error) {
	if n := strings.TrimSuffix(b.Nodes, "%"); n != "0" && n != "00" {
		return false, nil
	}
	if b.Schedule == "" {
		return true, nil
	}
	schedule, err := cron.ParseStandard("TZ=UTC " + b.Schedule)
	if err != nil {
		return false, fmt.Errorf("the schedule %q is invalid: %w", b.Schedule, err)
	}
	duration, err := time.ParseDuration(b.Duration)
	if err != nil || duration < 0 {
		return false, fmt.Errorf("the duration %q is invalid", b.Duration)
	}
	return !schedule.Next(now.UTC().Add(-duration)).After(now), nil
}
