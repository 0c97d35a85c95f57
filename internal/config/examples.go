package config

import _ "embed"

// SmallestExample is the smallest useful configuration, FullExample one with most of what there is.
var (
	//go:embed examples/smallest.yaml
	SmallestExample string
	//go:embed examples/full.yaml
	FullExample string
)
