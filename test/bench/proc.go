package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// The kernel's unit for a process's time (USER_HZ), 1/100 s on every platform of Linux.
const tick = time.Second / 100

func cpuOf(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The process's name, in brackets, may contain any character.
	_, rest, _ := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has only %d fields", pid, len(fields))
	}
	var sum time.Duration
	for _, f := range fields[11:13] { // the fields utime and stime
		ticks, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading /proc/%d/stat: %w", pid, err)
		}
		sum += time.Duration(ticks) * tick
	}
	return sum, nil
}

// The unit is MB (a million bytes). peak is the highest resident memory so far.
func memoryOf(pid int) (resident, anonymous, peak float64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, 0, err
	}
	for _, line := range strings.Split(string(data), "\n") {
		name, value, _ := strings.Cut(line, ":")
		kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		if err != nil {
			continue
		}
		switch name {
		case "VmRSS":
			resident = kib * 1024 / 1e6
		case "RssAnon":
			anonymous = kib * 1024 / 1e6
		case "VmHWM":
			peak = kib * 1024 / 1e6
		}
	}
	return resident, anonymous, peak, nil
}
