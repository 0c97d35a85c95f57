package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	corev1 "k8s.io/api/core/v1"
)

// The metrics of kube-state-metrics that a Node is made of.
const (
	metricInfo          = "kube_node_info"
	metricCreated       = "kube_node_created"
	metricDeletion      = "kube_node_deletion_timestamp"
	metricLabels        = "kube_node_labels"
	metricRole          = "kube_node_role"
	metricUnschedulable = "kube_node_spec_unschedulable"
	metricTaint         = "kube_node_spec_taint"
	metricCondition     = "kube_node_status_condition"
)

// stateMetrics are the jobs that the shipped rules take for kube-state-metrics.
const stateMetrics = "kube-state-metrics|.+[-/]kube-state-metrics"

func nodeMetrics() []string {
	return []string{
		metricInfo, metricCreated, metricDeletion, metricLabels, metricRole, metricUnschedulable, metricTaint, metricCondition,
	}
}

// fleet rebuilds the Nodes from the series of kube-state-metrics.
//
// A Node is gone when its series end while the kube-state-metrics that showed it still shows others. Where all series of
// one kube-state-metrics end at once, its Nodes are as they were last, until it, or its successor, shows what there is.
// Where no kube-state-metrics shows a Node, there is a gap.
type fleet struct {
	tracker  tracker[fact]
	lookback int64
	labels   map[string]string // the names of labels, by the name that kube-state-metrics makes of them
	skip     func(Skip)

	nodes   map[string]*nodePast
	targets map[string]*targetPast
	lost    map[*nodePast]bool // whose series have ended together with their target's
	checks  []int64            // when Nodes whose kube-state-metrics ended are looked at again
	gap     bool
	seen    map[string]bool // metrics
	unknown map[string]bool // labels whose names are not known
}

// fact is what one series says about a Node.
type fact struct {
	node   *nodePast
	target *targetPast
	metric string
}

type nodePast struct {
	name   string
	series []*series[fact]
	target *targetPast // that showed it last
	lost   int64       // since when it is lost
	now    *corev1.Node
}

// targetPast is one kube-state-metrics.
type targetPast struct {
	name  string // its job and instance
	shows int    // how many Nodes
	since int64
}

// nodeChange is what changed of the fleet at one instant.
type nodeChange struct {
	at    int64
	nodes []*corev1.Node
	gone  []string
	began bool // a gap begins
	ended bool // a gap ends
}

func newFleet(o Options, skip func(Skip)) *fleet {
	f := &fleet{
		lookback: o.Lookback.Milliseconds(), labels: map[string]string{}, skip: skip, gap: true,
		lost: map[*nodePast]bool{}, nodes: map[string]*nodePast{}, targets: map[string]*targetPast{},
		seen: map[string]bool{}, unknown: map[string]bool{},
	}
	for _, name := range slices.Concat(wellKnownLabels(), o.NodeLabels) {
		f.labels[sanitized(name)] = name
	}
	f.tracker = tracker[fact]{lookback: f.lookback, about: f.about, skip: skip}
	return f
}

func (f *fleet) about(of labels.Labels) (fact, bool) {
	f.seen[of.Get(model.MetricNameLabel)] = true
	name := of.Get("node")
	if name == "" {
		return fact{}, false
	}
	return fact{node: f.node(name), target: f.target(of.Get("job") + "\x00" + of.Get("instance")), metric: of.Get(model.MetricNameLabel)}, true
}

func (f *fleet) node(name string) *nodePast {
	n, ok := f.nodes[name]
	if !ok {
		n = &nodePast{name: name}
		f.nodes[name] = n
	}
	return n
}

func (f *fleet) target(name string) *targetPast {
	t, ok := f.targets[name]
	if !ok {
		t = &targetPast{name: name}
		f.targets[name] = t
	}
	return t
}

// run gives what changed from from (included) until until (excluded), in order of time.
func (f *fleet) run(ctx context.Context, data storage.Queryable, from, until int64) ([]nodeChange, error) {
	var changes []change[fact]
	for _, metric := range nodeMetrics() {
		found, err := f.tracker.read(ctx, data, from, until, shownNodes(metric)...)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", metric, err)
		}
		changes = append(changes, found...)
	}
	changes = append(changes, f.tracker.ends(until)...)
	slices.SortStableFunc(changes, func(a, b change[fact]) int { return cmp.Compare(a.at, b.at) })

	var out []nodeChange
	for len(changes) > 0 || len(f.checks) > 0 && f.checks[0] < until {
		at := int64(0)
		if len(changes) > 0 {
			at = changes[0].at
		}
		if len(f.checks) > 0 && (len(changes) == 0 || f.checks[0] <= at) {
			at, f.checks = f.checks[0], f.checks[1:]
		}
		touched := map[*nodePast]bool{}
		for len(changes) > 0 && changes[0].at == at {
			f.apply(changes[0])
			touched[changes[0].series.of.node] = true
			changes = changes[1:]
		}
		if c, any := f.settle(at, touched); any {
			out = append(out, c)
		}
	}
	return out, nil
}

// shownNodes selects the series of one metric of kube-state-metrics.
func shownNodes(metric string) []*labels.Matcher {
	return []*labels.Matcher{
		labels.MustNewMatcher(labels.MatchEqual, model.MetricNameLabel, metric),
		labels.MustNewMatcher(labels.MatchRegexp, "job", stateMetrics),
		labels.MustNewMatcher(labels.MatchEqual, "exported_node", ""),
	}
}

func (f *fleet) apply(c change[fact]) {
	s := c.series
	was := s.there
	c.apply()
	if s.there && !slices.Contains(s.of.node.series, s) {
		s.of.node.series = append(s.of.node.series, s)
	}
	if !s.there {
		s.of.node.series = slices.DeleteFunc(s.of.node.series, func(other *series[fact]) bool { return other == s })
	}
	if s.of.metric != metricInfo || was == s.there {
		return
	}
	target := s.of.target
	if s.there {
		s.of.node.target = target
		if target.shows++; target.shows == 1 {
			target.since = c.at
			f.checks = append(f.checks, c.at+f.lookback)
		}
		return
	}
	if target.shows--; target.shows == 0 {
		target.since = c.at
	}
}

// settle decides what the changes of one instant mean.
func (f *fleet) settle(at int64, touched map[*nodePast]bool) (nodeChange, bool) {
	out := nodeChange{at: at}
	shown := false
	for _, target := range f.targets {
		shown = shown || target.shows > 0
	}
	out.began, out.ended = !shown && !f.gap, shown && f.gap
	f.gap = !shown
	for node := range f.lost {
		touched[node] = true
	}
	for node := range touched {
		if node.shown() {
			f.found(node)
			if next := f.build(node, at); !same(node.now, next) {
				node.now = next
				out.nodes = append(out.nodes, next)
			}
			continue
		}
		if node.now == nil {
			continue
		}
		if !f.lost[node] {
			node.lost, f.lost[node] = at, true
		}
		if f.deleted(node, at) {
			out.gone = append(out.gone, node.name)
			node.now = nil
			f.found(node)
		}
	}
	slices.SortFunc(out.nodes, func(a, b *corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.Sort(out.gone)
	return out, out.began || out.ended || len(out.nodes) > 0 || len(out.gone) > 0
}

func (f *fleet) found(node *nodePast) {
	delete(f.lost, node)
	node.lost = 0
}

// deleted says whether a Node that nothing shows is gone: the kube-state-metrics that showed it shows others, or another
// one has come since, and has shown others for the lookback.
func (f *fleet) deleted(node *nodePast, at int64) bool {
	if node.target.shows > 0 {
		return true
	}
	for _, target := range f.targets {
		if target.shows > 0 && target.since >= node.lost && at-target.since >= f.lookback {
			return true
		}
	}
	return false
}

func (n *nodePast) shown() bool {
	return slices.ContainsFunc(n.series, func(s *series[fact]) bool { return s.of.metric == metricInfo })
}

// sanitized is what kube-state-metrics makes of a label's name.
func sanitized(name string) string {
	return "label_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, name)
}

func wellKnownLabels() []string {
	return []string{
		corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelInstanceTypeStable,
		corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
		corev1.LabelInstanceType, corev1.LabelNodeExcludeBalancers,
		"karpenter.sh/nodepool", "karpenter.sh/capacity-type", "kubernetes.civo.com/civo-node-pool", "eks.amazonaws.com/nodegroup",
		"cloud.google.com/gke-nodepool", "kubernetes.azure.com/agentpool", "drydock.dev/exclude",
	}
}

// skipUnknownLabel names a label of a Node whose name kube-state-metrics has changed in a way that cannot be undone.
func (f *fleet) skipUnknownLabel(name string) {
	if f.unknown[name] {
		return
	}
	f.unknown[name] = true
	f.skip(Skip{
		What: metricLabels + "{" + name + "}",
		Why:  "the name that this label has on the Node is not known, so no Node has it",
	})
}

// missing names the metrics that no data was found of.
func (f *fleet) missing() []Skip {
	var out []Skip
	for _, metric := range nodeMetrics() {
		if !f.seen[metric] && metric != metricDeletion && metric != metricTaint {
			out = append(out, Skip{What: metric, Why: "no series in the data: Nodes lack what it says"})
		}
	}
	return out
}

func seconds(v float64) time.Time { return time.UnixMilli(int64(v * 1000)).UTC() }

func sortedSeries(of []*series[fact]) []*series[fact] {
	return slices.SortedFunc(slices.Values(of), func(a, b *series[fact]) int {
		return cmp.Or(-cmp.Compare(a.since, b.since), labels.Compare(a.labels, b.labels))
	})
}

func sortedKeys[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }

func uid(name string, created time.Time) string {
	if created.IsZero() {
		return name
	}
	return name + "-" + strconv.FormatInt(created.Unix(), 10)
}
