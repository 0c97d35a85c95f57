package config

import (
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8slabels "k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	"drydock.dev/drydock/remediations"
)

// maxStaleness is invariant 5's bound: no side effect rests on a word of Alertmanager that is older.
const maxStaleness = 30 * time.Second

// renewJitter is client-go's leaderelection.JitterFactor: it refuses a deadline within one jittered retry.
const renewJitter = 1.2

// builder checks what a schema cannot say and compiles the types that the program runs on.
type builder struct {
	*document
	dir       string
	skipFiles bool

	config   Config
	core     remediations.Config
	policies []PolicyInfo
	shipped  []*document
}

// out returns what was built.
func (b *builder) out() *Config {
	c, core := b.config, b.core
	for _, p := range b.policies {
		core.Policies = append(core.Policies, p.Policy)
	}
	c.Core, c.Policies = &core, b.policies
	return &c
}

// faults returns those of the file and of the shipped policies.
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
	b.config.HealthListen = b.listen(root.to("health", "listen"), raw.Health.Listen)
	b.buildWebhook(raw)
	b.distinctListeners()
	b.buildLeaderElection(raw)
	b.config.Ledger = ObjectName{
		b.namespace(root.to("ledger", "namespace"), raw.Ledger.Namespace),
		b.objectName(root.to("ledger", "name"), raw.Ledger.Name),
	}
	b.buildAlertmanager(raw)
	b.buildLimits(raw)
	b.buildWindows(raw)
	b.buildCivo(raw)
	b.buildSidecars(raw.Providers.Sidecars)
	b.buildKilo(raw.Providers.Kilo)
	b.buildHosts(raw.Providers.Hosts)
	b.buildControlPlane(raw)
	b.buildDaemonSets(raw)
	b.buildClusterWide(raw.Providers.ClusterWide)
}

func (b *builder) buildLeaderElection(raw *rawConfig) {
	at, l := pointer{"leaderElection"}, raw.LeaderElection
	lease, leaseOK := b.duration(at.to("leaseDuration"), l.LeaseDuration, time.Second)
	renew, renewOK := b.duration(at.to("renewDeadline"), l.RenewDeadline, time.Nanosecond)
	retry, retryOK := b.duration(at.to("retryPeriod"), l.RetryPeriod, time.Nanosecond)
	if leaseOK && renewOK && renew >= lease {
		b.fault(at.to("renewDeadline"), "%s is not shorter than leaseDuration (%s); write a shorter one", l.RenewDeadline, l.LeaseDuration)
	}
	if renewOK && retryOK && float64(renew) <= renewJitter*float64(retry) {
		b.fault(at.to("retryPeriod"), "%s is too long: renewDeadline (%s) must be longer than 1.2 times it; write a shorter one", l.RetryPeriod, l.RenewDeadline)
	}
	b.config.LeaderElection = LeaderElection{
		Enabled:       l.Enabled,
		Lease:         ObjectName{b.namespace(at.to("namespace"), l.Namespace), b.objectName(at.to("name"), l.Name)},
		LeaseDuration: lease, RenewDeadline: renew, RetryPeriod: retry,
	}
}

func (b *builder) buildAlertmanager(raw *rawConfig) {
	at, a := pointer{"alertmanager"}, raw.Alertmanager
	out := Alertmanager{Receiver: a.Receiver, SilenceRepairs: a.SilenceRepairs}
	out.URLs = b.urls(at.to("urls"), a.URLs)
	out.HTTPConfig = b.httpConfig(at.to("httpConfig"), a.HTTPConfig)
	poll, pollOK := b.duration(at.to("pollInterval"), a.PollInterval, time.Second)
	stale, staleOK := b.duration(at.to("maxStaleness"), a.MaxStaleness, time.Second)
	if staleOK && stale > maxStaleness {
		b.fault(at.to("maxStaleness"), "%s is too long; write at most 30s, no side effect may rest on an older word", a.MaxStaleness)
	} else if pollOK && staleOK && poll > stale {
		b.fault(at.to("pollInterval"), "%s is longer than maxStaleness (%s); write a shorter one", a.PollInterval, a.MaxStaleness)
	}
	out.PollInterval, b.core.MaxStaleness = poll, stale
	b.core.RequireAll = a.Require == "all"
	if a.Watchdog != "" {
		out.Watchdog = b.matchers(at.to("watchdog"), a.Watchdog)
		b.core.Watchdog = true
		b.needsValue(at.to("watchdog"), out.Watchdog)
		out.Watchdog = b.ours(out.Watchdog)
	}
	if a.SelfTest != "" {
		b.core.SelfTest = b.matchers(at.to("selfTest"), a.SelfTest)
		b.needsValue(at.to("selfTest"), b.core.SelfTest)
	}
	b.core.Receiver = a.Receiver
	for i, text := range a.BlindWhen {
		m := b.matchers(at.to("blindWhen", i), text)
		b.needsValue(at.to("blindWhen", i), m)
		out.BlindWhen = append(out.BlindWhen, b.ours(m))
	}
	b.config.Alertmanager = out
}

func (b *builder) buildLimits(raw *rawConfig) {
	at, l := pointer{"limits"}, raw.Limits
	out := remediations.Limits{
		Concurrent:        b.quantity(at.to("concurrent"), l.Concurrent),
		ConcurrentPerZone: b.quantity(at.to("concurrentPerZone"), l.ConcurrentPerZone),
		ConcurrentPerPool: b.quantity(at.to("concurrentPerPool"), l.ConcurrentPerPool),
		Unhealthy:         b.quantity(at.to("unhealthy"), l.Unhealthy),
		PoolLabels:        l.PoolLabels,
		ZoneLabel:         l.ZoneLabel,
		RepairsPerNode:    l.RepairsPerNode,
	}
	for i, key := range l.PoolLabels {
		b.labelKey(at.to("poolLabels", i), key)
	}
	b.labelKey(at.to("zoneLabel"), l.ZoneLabel)
	out.RepairsWindow, _ = b.duration(at.to("repairsWindow"), l.RepairsWindow, time.Minute)
	out.StormCooldown, _ = b.duration(at.to("stormCooldown"), l.StormCooldown, 0)
	out.StartupGrace, _ = b.duration(at.to("startupGrace"), l.StartupGrace, 0)
	out.Sidecars = l.Sidecars.Concurrent
	out.Locations.Concurrent = l.Leaders.Concurrent
	out.Locations.PerLocation, _ = b.duration(at.to("leaders", "perLocation"), l.Leaders.PerLocation, time.Minute)
	b.core.Limits = out
}

func (b *builder) buildCivo(raw *rawConfig) {
	c := raw.Providers.Civo
	if c == nil {
		return
	}
	at := pointer{"providers", "civo"}
	timeout, _ := b.duration(at.to("timeout"), c.Timeout, time.Second)
	b.config.Civo = &Civo{
		APIURL:    b.url(at.to("apiURL"), c.APIURL),
		ClusterID: c.ClusterID, Region: c.Region,
		APIKeyFile: b.secretFile(at.to("apiKeyFile"), c.APIKeyFile),
		Timeout:    timeout,

		NodeSelector: b.servedNodes(at.to("nodeSelector"), c.NodeSelector),
	}
}

// servedNodes reads which Nodes a provider serves; nil: the configuration leaves that to their spec.providerID.
func (b *builder) servedNodes(at pointer, s *metav1.LabelSelector) k8slabels.Selector {
	selector := b.nodeSelector(at, s)
	if s != nil && selector == nil {
		return k8slabels.Everything()
	}
	return selector
}

// resolve returns a file's name as seen from the folder that the configuration is in.
func (b *builder) resolve(file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(b.dir, file)
}

func (b *builder) namespace(p pointer, name string) string {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		b.fault(p, "%q is not a namespace; write for example drydock", name)
	}
	return name
}

func (b *builder) objectName(p pointer, name string) string {
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		b.fault(p, "%q is not an object's name; write for example drydock", name)
	}
	return name
}

func (b *builder) labelKey(p pointer, key string) {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		b.fault(p, "%q is not a node label's key; write for example topology.kubernetes.io/zone", key)
	}
}
