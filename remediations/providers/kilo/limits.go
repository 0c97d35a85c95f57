package kilo

import "time"

// Limits on requests, and on the size of answers.
const (
	// pageSize is how many Nodes one answer of the API server has. A real Node has tens of
	// kilobytes.
	pageSize = 500
	// apiTimeout bounds one request to the API server, except the list of all Nodes, which
	// listTimeout bounds.
	apiTimeout  = 10 * time.Second
	listTimeout = 30 * time.Second
	// patchTries is how often Drydock tries to write a Node that other writers change at the same
	// time. The node's Kilo agent writes twice a minute, its kubelet more often.
	patchTries = 5

	// leaseAhead is how far a kubelet's clock may be ahead of Drydock's. If it is further ahead,
	// its lease shows nothing.
	leaseAhead = time.Minute

	// defaultTimeout and defaultMaxAge are the defaults of Options.Timeout and Options.MaxAge.
	defaultTimeout = 10 * time.Second
	defaultMaxAge  = 7 * time.Minute
	// freshFor is how old a result may be that shows that a location is reached now. Agents probe
	// each 10 s, and repeat a result for 30 s.
	freshFor = 45 * time.Second
	// maxAnswerBytes bounds one answer of Prometheus. Seven minutes of a node's results about more
	// than 100 siblings, one series each, take about 140 KB: this is enough for a location of some
	// 240 nodes.
	maxAnswerBytes = 32 << 20
	// maxSeries bounds the series in that answer: 240 nodes that probe each other by two protocols
	// have 115,000 series.
	maxSeries = 150_000
	// maxReplicas bounds the URLs of Prometheus, and the addresses of each name.
	maxReplicas = 16
	// maxText bounds a text that is quoted from elsewhere. maxNamed is how many nodes a sentence
	// names at most.
	maxText, maxNamed = 200, 5
	// maxCandidates is how many candidates are proposed at most; a repair tries only a few.
	maxCandidates = 16
)

// How the results about a node are judged.
const (
	// suspectBy is how many siblings must have failed to reach a node before it counts as at fault.
	// A single sibling that fails may be at fault itself.
	suspectBy = 2
	// failingShare is the share of failed probes in MaxAge above which a node was a suspect lately:
	// one minute of seven.
	failingShare = 0.15
	// reachedShare is the share of members that must answer from elsewhere.
	reachedShare = 0.8
)
