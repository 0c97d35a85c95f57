package kilo

import "time"

// Limits for requests and answers.
const (
	// pageSize is how many Nodes the API server lists in one answer. A real Node has tens of
	// kilobytes.
	pageSize = 500
	// apiTimeout limits one request to the API server. The list of all Nodes, which may take several
	// requests, has the limit listTimeout.
	apiTimeout  = 10 * time.Second
	listTimeout = 30 * time.Second
	// patchTries is how often Drydock tries to write a Node while other programs change it. The
	// node's Kilo agent writes twice a minute, and the kubelet more often.
	patchTries = 5

	// leaseAhead is how far a kubelet's clock may be ahead of Drydock's. If it is further ahead,
	// the kubelet's lease shows nothing.
	leaseAhead = time.Minute

	// freshFor is the largest age of a probe result that shows whether a location is reached now.
	// Agents probe every 10 s and repeat a result for 30 s.
	freshFor = 45 * time.Second
	// maxAnswerBytes is the largest answer of Prometheus. In seven minutes, a node probes more than
	// 100 siblings. These results, one series for each sibling, take about 140 KB. So the limit is
	// enough for a location of about 240 nodes.
	maxAnswerBytes = 32 << 20
	// maxSeries is the largest number of series in an answer of Prometheus: 240 nodes that probe
	// each other by two protocols make 115,000 series.
	maxSeries = 150_000
	// maxReplicas is the largest number of URLs of Prometheus, and of addresses of each host name.
	maxReplicas = 16
	// maxText is how many bytes of a foreign text are quoted. maxNamed is how many nodes a sentence
	// names at most.
	maxText, maxNamed = 200, 5
	// maxCandidates is how many candidates an observation proposes at most. A repair tries only a
	// few.
	maxCandidates = 16
)

// Thresholds for the probe results about a node.
const (
	// suspectBy is how many siblings must have failed to reach a node before the node counts as
	// faulty. If only one sibling fails, that sibling may be faulty itself.
	suspectBy = 2
	// failingShare is how large the share of failed probes may be, within MaxAge. If it is larger, the
	// result counts against the probed node. 0.15 is one minute of seven.
	failingShare = 0.15
	// reachedShare is the share of a location's members that other locations must reach, so that
	// the location counts as reached.
	reachedShare = 0.8
)
