package config

import _ "embed"

// SmallestExample is the smallest useful configuration. FullExample has most keys.
var (
	//go:embed examples/smallest.yaml
	SmallestExample string
	//go:embed examples/full.yaml
	FullExample string
)
