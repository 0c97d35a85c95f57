package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Fault is an error in a configuration, or a warning about it.
type Fault struct {
	// File is the file's name as the user gave it. For a shipped policy, it is shipped/<name>.yaml.
	File string
	// Line is the line of the key or value. If the key is missing, it is the line of the nearest
	// parent.
	Line int
	// Path is the path of the value, for example policies[0].plan[1].wait.
	Path string
	// Message says what is wrong and what to write instead.
	Message string
	// Warning reports that the fault is only a warning: the configuration is usable.
	Warning bool
}

func (f Fault) String() string {
	warning := ""
	if f.Warning {
		warning = "warning: "
	}
	return fmt.Sprintf("%s:%d: %s%s: %s", f.File, f.Line, warning, f.Path, f.Message)
}

// Faults is the error for an unusable configuration. It has every fault, not only the first.
type Faults []Fault

func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].String()
	}
	return strings.Join(lines, "\n")
}

func sortFaults(faults []Fault) {
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Path, b.Path))
	})
}
