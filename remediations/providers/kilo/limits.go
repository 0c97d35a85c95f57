package kilo

import "time"

const (
	// A real Node has tens of kilobytes.
	pageSize = 500
	// apiTimeout is for one request to the API server, and listTimeout for the list of all Nodes,
	// which may take several requests.
	apiTimeout  = 10 * time.Second
	listTimeout = 30 * time.Second
	// The node's Kilo agent writes the Node twice a minute, and the kubelet more often.
	patchTries = 5

	// The lease of a kubelet whose clock is further ahead shows nothing.
	leaseAhead = time.Minute

	// Agents probe every 10 s and repeat a result for 30 s.
	freshFor = 45 * time.Second
	// In seven minutes, a node probes more than 100 siblings, and their series take about 140 KB.
	// So the limit is enough for a location of about 240 nodes.
	maxAnswerBytes = 32 << 20
	// 240 nodes that probe each other by two protocols make 115,000 series.
	maxSeries = 150_000
	// maxReplicas is for the URLs of Prometheus, and for the addresses of each host name.
	maxReplicas = 16
	// maxText is in bytes of a foreign text. maxNamed is how many nodes a sentence names.
	maxText, maxNamed = 200, 5
	// A repair tries only a few candidates.
	maxCandidates = 16
)

const (
	// suspectBy siblings must have failed to reach a node before it counts as faulty. A single one
	// may be faulty itself.
	suspectBy = 2
	// A larger share of failed probes within MaxAge counts against the probed node. 0.15 is one
	// minute of seven.
	failingShare = 0.15
	// reachedShare is the share of a location's members that other locations must reach.
	reachedShare = 0.8
)
