package config

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/alertmanager/pkg/labels"
	"github.com/prometheus/common/model"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/remediations"
)

// maxStaleness is the limit of invariant 5 (see remediations/doc.go): Drydock changes nothing
// because of an answer of Alertmanager that is older than this.
const maxStaleness = 30 * time.Second

// renewJitter is client-go's leaderelection.JitterFactor. client-go requires that renewDeadline is
// longer than retryPeriod times this factor.
const renewJitter = 1.2

type builder struct {
	*document
	dir       string
	skipFiles bool

	config   Config
	core     remediations.Config
	policies []PolicyInfo
	shipped  []*document
}

func (b *builder) out() *Config {
	c, core := b.config, b.core
	for _, p := range b.policies {
		core.Policies = append(core.Policies, p.Policy)
	}
	c.Core, c.Policies = &core, b.policies
	return &c
}

func (b *builder) faults() []Fault {
	out := b.document.faults
	for _, d := range b.shipped {
		out = append(out, d.faults...)
	}
	return out
}

func (b *builder) build(raw *rawConfig) {
	root := pointer{}
	b.config.Mode = remediations.Mode(raw.Mode)
	b.core.Mode = b.config.Mode
	b.core.ClusterLabel, b.core.ClusterValue = raw.Cluster.Label, raw.Cluster.Value
	b.buildReceiver(raw)
	b.buildMetrics(raw)
	b.config.HealthListen = b.listen(root.To("health", "listen"), raw.Health.Listen)
	b.buildWebhook(raw)
	b.distinctListeners()
	b.buildLeaderElection(raw)
	b.config.Ledger = ObjectName{
		b.Namespace(root.To("ledger", "namespace"), raw.Ledger.Namespace),
		b.ObjectName(root.To("ledger", "name"), raw.Ledger.Name),
	}
	b.buildNotify(raw)
	b.buildAlertmanager(raw)
	b.buildLimits(raw)
	b.buildHoldWhen(raw)
	b.buildAnnounce(raw)
	b.buildWindows(raw)
	b.buildSections()
	b.buildControlPlane(raw)
}

func (b *builder) buildLeaderElection(raw *rawConfig) {
	at, l := pointer{"leaderElection"}, raw.LeaderElection
	lease, leaseOK := b.Duration(at.To("leaseDuration"), l.LeaseDuration, time.Second)
	renew, renewOK := b.Duration(at.To("renewDeadline"), l.RenewDeadline, time.Nanosecond)
	retry, retryOK := b.Duration(at.To("retryPeriod"), l.RetryPeriod, time.Nanosecond)
	if leaseOK && renewOK && renew >= lease {
		b.Fault(at.To("renewDeadline"), "%s is not shorter than leaseDuration (%s); write a shorter one", l.RenewDeadline, l.LeaseDuration)
	}
	if renewOK && retryOK && float64(renew) <= renewJitter*float64(retry) {
		b.Fault(at.To("retryPeriod"), "%s is too long: renewDeadline (%s) must be longer than 1.2 times it; write a shorter one", l.RetryPeriod, l.RenewDeadline)
	}
	b.config.LeaderElection = LeaderElection{
		Enabled:       l.Enabled,
		Lease:         ObjectName{b.Namespace(at.To("namespace"), l.Namespace), b.ObjectName(at.To("name"), l.Name)},
		Cluster:       ObjectName{b.Namespace(at.To("cluster", "namespace"), l.Cluster.Namespace), b.ObjectName(at.To("cluster", "name"), l.Cluster.Name)},
		LeaseDuration: lease, RenewDeadline: renew, RetryPeriod: retry,
	}
	if le := b.config.LeaderElection; le.Lease == le.Cluster {
		b.Fault(at.To("cluster"), "this is also the Lease that the replicas use to elect their leader; write another name or namespace")
	}
}

func (b *builder) buildNotify(raw *rawConfig) {
	at, n := pointer{"notify"}, raw.Notify
	for _, name := range slices.Sorted(maps.Keys(n.Labels)) {
		if slices.Contains(remediations.EndedLabels, name) || name == raw.Cluster.Label {
			b.Fault(at.To("labels", name), "Drydock sets this label itself; write another name")
		}
	}
	b.config.Notify = Notify{Alertmanager: n.Alertmanager, Labels: n.Labels}
}

func (b *builder) buildAlertmanager(raw *rawConfig) {
	at, a := pointer{"alertmanager"}, raw.Alertmanager
	out := Alertmanager{Receiver: a.Receiver, SilenceRepairs: a.SilenceRepairs}
	out.URLs = b.URLs(at.To("urls"), a.URLs)
	for i, text := range a.URLs {
		for _, path := range []string{"/api/v1", "/api/v2", "/api/v1/alerts", "/api/v2/alerts"} {
			if strings.HasSuffix(strings.TrimRight(text, "/"), path) {
				b.Fault(at.To("urls", i), "ends with %s, which Drydock appends itself; remove it. Only an Alertmanager with --web.route-prefix needs a path", path)
			}
		}
	}
	out.HTTPConfig = b.HTTPConfig(at.To("httpConfig"), a.HTTPConfig)
	poll, pollOK := b.Duration(at.To("pollInterval"), a.PollInterval, time.Second)
	stale, staleOK := b.Duration(at.To("maxStaleness"), a.MaxStaleness, time.Second)
	if staleOK && stale > maxStaleness {
		b.Fault(at.To("maxStaleness"), "%s is too long; write at most 30s, because no call may depend on older data", a.MaxStaleness)
	} else if pollOK && staleOK && poll > stale {
		b.Fault(at.To("pollInterval"), "%s is longer than maxStaleness (%s); write a shorter one", a.PollInterval, a.MaxStaleness)
	}
	out.PollInterval, b.core.MaxStaleness = poll, stale
	b.core.RequireAll = a.Require == "all"
	if a.Watchdog != "" {
		out.Watchdog = b.matchers(at.To("watchdog"), a.Watchdog)
		b.core.Watchdog = true
		b.needsValue(at.To("watchdog"), out.Watchdog)
		out.Watchdog = b.ours(out.Watchdog)
	}
	if a.SelfTest != "" {
		b.core.SelfTest = b.matchers(at.To("selfTest"), a.SelfTest)
		b.needsValue(at.To("selfTest"), b.core.SelfTest)
	}
	b.core.Receiver = a.Receiver
	for i, text := range a.BlindWhen {
		m := b.matchers(at.To("blindWhen", i), text)
		b.needsValue(at.To("blindWhen", i), m)
		out.BlindWhen = append(out.BlindWhen, b.ours(m))
	}
	out.SourceSeen = b.ours(labels.Matchers{
		{Type: labels.MatchEqual, Name: model.AlertNameLabel, Value: "DrydockSelfTest"}, {Type: labels.MatchEqual, Name: "source", Value: "seen"},
	})
	b.config.Alertmanager = out
}

func (b *builder) buildLimits(raw *rawConfig) {
	at, l := pointer{"limits"}, raw.Limits
	out := remediations.Limits{
		Concurrent:        b.Quantity(at.To("concurrent"), l.Concurrent),
		ConcurrentPerZone: b.Quantity(at.To("concurrentPerZone"), l.ConcurrentPerZone),
		ConcurrentPerPool: b.Quantity(at.To("concurrentPerPool"), l.ConcurrentPerPool),
		Unhealthy:         b.Quantity(at.To("unhealthy"), l.Unhealthy),
		PoolLabels:        l.PoolLabels,
		ZoneLabel:         l.ZoneLabel,
		RepairsPerNode:    l.RepairsPerNode,
	}
	for i, key := range l.PoolLabels {
		b.LabelKey(at.To("poolLabels", i), key)
	}
	b.LabelKey(at.To("zoneLabel"), l.ZoneLabel)
	out.RepairsWindow, _ = b.Duration(at.To("repairsWindow"), l.RepairsWindow, time.Minute)
	out.StormCooldown, _ = b.Duration(at.To("stormCooldown"), l.StormCooldown, 0)
	out.StartupGrace, _ = b.Duration(at.To("startupGrace"), l.StartupGrace, 0)
	out.CommonCause.Nodes = l.CommonCause.Nodes
	out.CommonCause.Within, _ = b.Duration(at.To("commonCause", "within"), l.CommonCause.Within, time.Second)
	if out.CommonCause.Nodes == 1 {
		b.Fault(at.To("commonCause", "nodes"), "a common cause needs at least 2 nodes; write 2 or more, or 0 to switch this off")
	}
	out.Sidecars = l.Sidecars.Concurrent
	out.Locations.Concurrent = l.Leaders.Concurrent
	out.Locations.PerLocation, _ = b.Duration(at.To("leaders", "perLocation"), l.Leaders.PerLocation, time.Minute)
	b.core.Limits = out
}

func (b *builder) Nodes(at pointer, s *metav1.LabelSelector) k8slabels.Selector {
	selector := b.Selector(at, s)
	if s != nil && selector == nil {
		return k8slabels.Everything()
	}
	return selector
}

// resolve expects a name relative to the configuration's folder.
func (b *builder) resolve(file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(b.dir, file)
}

func (b *builder) Namespace(p pointer, name string) string {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		b.Fault(p, "%q is not a namespace; write for example drydock", name)
	}
	return name
}

func (b *builder) ObjectName(p pointer, name string) string {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		b.Fault(p, "%q is not an object's name; write for example drydock", name)
	}
	return name
}

func (b *builder) LabelKey(p pointer, key string) {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		b.Fault(p, "%q is not a node label's key; write for example topology.kubernetes.io/zone", key)
	}
}

func (b *builder) NamespacedName(p pointer, text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	if text != "" && !b.Faulty(p) {
		b.Namespace(p, namespace)
		b.ObjectName(p, name)
	}
	return types.NamespacedName{Namespace: namespace, Name: name}
}
