package kilo

import "time"

// Limits on what is asked of others, and on what they may answer.
const (
	// pageSize is how many Nodes one answer of the API server holds; a real one weighs tens of kilobytes.
	pageSize = 500
	// apiTimeout bounds one request to the API server but for the list of all Nodes, and listTimeout that.
	apiTimeout  = 10 * time.Second
	listTimeout = 30 * time.Second
	// patchTries is how often a Node is written that somebody else changes at the same time: its Kilo agent does twice a
	// minute, its kubelet more often.
	patchTries = 5

	// leaseAhead is how far a kubelet's clock may be ahead of ours before its lease says nothing.
	leaseAhead = time.Minute

	// defaultTimeout and defaultMaxAge are Options'.
	defaultTimeout = 10 * time.Second
	defaultMaxAge  = 7 * time.Minute
	// freshFor is how old a word may be that says that a location is reached now. Agents probe each 10 s, and repeat a word
	// for 30 s.
	freshFor = 45 * time.Second
	// maxAnswerBytes bounds one answer of Prometheus. Seven minutes of a node's words about more than 100 siblings, of which each
	// is a series, take about 140 KB: this is a location of some 240 nodes.
	maxAnswerBytes = 32 << 20
	// maxSeries bounds its series: 240 nodes about each other by two protocols are 115,000.
	maxSeries = 150_000
	// maxReplicas bounds the URLs of Prometheus, and the addresses of each name.
	maxReplicas = 16
	// maxText bounds what is quoted of others, maxNamed how many nodes a sentence names.
	maxText, maxNamed = 200, 5
	// maxCandidates is how many are proposed; a repair tries a few at most.
	maxCandidates = 16
)

// What words say of a node.
const (
	// suspectBy is how many siblings must have failed to reach a node before it is taken for the one at fault: one that
	// fails to may be at fault itself.
	suspectBy = 2
	// failingShare is the share of failed probes in MaxAge beyond which a node was a suspect lately: a minute of seven.
	failingShare = 0.15
	// reachedShare is the share of members that must answer from elsewhere.
	reachedShare = 0.8
)
