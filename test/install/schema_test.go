package install

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	appsv1 "k8s.io/api/apps/v1"

	"drydock.dev/drydock/internal/lab"
)

// open are the values with keys that the user chooses.
var open = []string{
	"monitoring.labels", "serviceMonitor.labels", "prometheusRule.labels", "alertmanagerConfig.labels",
	"grafanaDashboard.labels", "serviceAccount.annotations", "podAnnotations", "podLabels", "nodeSelector",
	"resources.requests", "resources.limits",
	"commonLabels", "commonAnnotations", "service.annotations", "service.labels", "deploymentAnnotations", "affinity", "grafanaDashboard.annotations",
	"podSecurityContext", "securityContext", // Kubernetes' own types, which the API server checks
	"agent.podMonitor.labels", "agent.podAnnotations", "agent.podLabels", "agent.resources.requests", "agent.resources.limits", "agent.nodeSelector",
}

// TestAMisspeltKeyIsRefused at every place of the values.
func TestAMisspeltKeyIsRefused(t *testing.T) {
	defaults, err := common.ReadValuesFile(filepath.Join(root(t), "charts", "drydock", "values.yaml"))
	require.NoError(t, err)
	var mappings []string
	var walk func(path string, at map[string]any)
	walk = func(path string, at map[string]any) {
		mappings = append(mappings, path)
		for _, key := range slices.Sorted(maps.Keys(at)) {
			below := strings.TrimPrefix(path+"."+key, ".")
			if further, ok := at[key].(map[string]any); ok && !slices.Contains(open, below) {
				walk(below, further)
			}
		}
	}
	walk("", defaults)
	require.Greater(t, len(mappings), 15)
	for _, path := range mappings {
		values := m{"mispelt": true}
		for _, key := range slices.Backward(strings.FieldsFunc(path, func(r rune) bool { return r == '.' })) {
			values = m{key: values}
		}
		_, err := lab.RenderChart("drydock", "drydock", values)
		require.ErrorContains(t, err, "mispelt", "%q", path)
	}
	for _, path := range open {
		var values any = m{"own": "1"}
		for _, key := range slices.Backward(strings.Split(path, ".")) {
			values = m{key: values}
		}
		_, err := lab.RenderChart("drydock", "drydock", values.(m))
		require.NoError(t, err, path)
	}
}

// TestValuesThatCannotWorkAreRefused, with a message that says what to do.
func TestValuesThatCannotWorkAreRefused(t *testing.T) {
	civo := m{"civo": m{"clusterID": "c", "region": "r"}}
	for name, tc := range map[string]struct {
		values m
		says   string
	}{
		"a mode that is none":                  {m{"config": m{"mode": "enforced"}}, "at '/config/mode': value must be one of 'observe', 'enforce'"},
		"a key that the program has not":       {m{"config": m{"limits": m{"concurrentt": 2}}}, "at '/config/limits': additional properties 'concurrentt' not allowed"},
		"text in the place of a mapping":       {m{"config": m{"cluster": "prod"}}, "at '/config/cluster': got string, want object"},
		"a provider's key that it has not":     {m{"config": m{"providers": m{"civo": m{"clusterID": "c", "region": "r", "zone": "z"}}}}, "additional properties 'zone' not allowed"},
		"a sidecar that lacks what sei has":    {m{"config": m{"providers": m{"sidecars": []any{m{"name": "other"}}}}}, "missing properties 'approve', 'health', 'port', 'selector'"},
		"a provider without its key":           {m{"config": m{"providers": civo}}, "set secrets.civoAPIKey.name"},
		"a ledger without rights to it":        {m{"config": m{"ledger": m{"namespace": "other"}}}, "config.ledger.namespace must be the release's namespace"},
		"a Lease without rights to it":         {m{"config": m{"leaderElection": m{"namespace": "other"}}}, "config.leaderElection.namespace must be"},
		"a route without a token":              {m{"monitoring": m{"operator": true}, "config": m{"receiver": m{"insecure": true}}}, "alertmanagerConfig.enabled needs a token"},
		"tokens of scrapes in clear text":      {m{"metrics": m{"authentication": m{"enabled": true}}}, "set metrics.authentication.secret"},
		"the same, written out":                {m{"config": m{"metrics": m{"authenticate": true}}}, "set metrics.authentication.secret"},
		"metrics asked about and not":          {m{"metrics": m{"authentication": m{"enabled": true, "secret": "s"}}, "config": m{"metrics": m{"authenticate": false}}}, "contradict each other"},
		"metrics with two certificates":        {m{"metrics": m{"authentication": m{"enabled": true, "secret": "s", "certManager": m{"enabled": true}}}}, "exclude each other"},
		"a file outside the folder":            {m{"secretMounts": []any{m{"secret": "s", "key": "k", "path": "../x"}}}, "secretMounts"},
		"a file in the place of another":       {m{"secretMounts": []any{m{"secret": "s", "key": "k", "path": "token"}}}, "secretMounts"},
		"a port that the agents' metrics have": {m{"agent": m{"port": 9100}}, "port"},
		"replicas, renamed":                    {m{"replicas": 3}, "the value replicas was renamed: set replicaCount"},
		"the operator's switch, renamed":       {m{"prometheusOperator": m{"enabled": true}}, "the value prometheusOperator was renamed: set monitoring, and monitoring.operator for prometheusOperator.enabled"},
		"pull secrets, renamed":                {m{"image": m{"pullSecrets": []any{m{"name": "a"}}}}, "the value image.pullSecrets was renamed: set imagePullSecrets"},
		"settings of a webhook that is off":    {m{"config": m{"webhook": m{"evictions": true}}}, "admission.webhook.enabled is false: set admission.webhook.enabled to true, or remove config.webhook"},
		"the webhook's old switch":             {m{"config": m{"webhook": m{}}}, "set admission.webhook.enabled to true"},
		"two pods that repair in an upgrade":   {m{"replicaCount": 1, "strategy": m{"type": "RollingUpdate"}, "config": m{"leaderElection": m{"enabled": false}}}, "Set strategy.type to Recreate"},
		"several leaders":                      {m{"config": m{"leaderElection": m{"enabled": false}}}, "each replica would repair on its own. Set replicaCount to 1"},
		"a receiver that Alertmanager misses":  {m{"config": m{"receiver": m{"listen": "127.0.0.1:9095"}}}, "config.receiver.listen is 127.0.0.1:9095: only the pod itself reaches that address. Write :9095"},
		"metrics that Prometheus misses":       {m{"config": m{"metrics": m{"listen": "[::1]:8080"}}}, "config.metrics.listen is [::1]:8080"},
		"health that the kubelet misses":       {m{"config": m{"health": m{"listen": "localhost:8081"}}}, "config.health.listen is localhost:8081"},
		"two servers on one port":              {m{"config": m{"metrics": m{"listen": ":9095"}}}, "config.metrics.listen and config.receiver.listen have the same port, 9095"},
		"a host that the certificate lacks":    {m{"admission": m{"webhook": m{"enabled": true, "url": "https://a.example.com"}}, "config": m{"webhook": m{"dnsNames": []any{"b.example.com"}}}}, "the host a.example.com, which config.webhook.dnsNames lacks"},
		"a file that no pod has":               {m{"config": m{"alertmanager": m{"httpConfig": m{"tls_config": m{"ca_file": "/etc/drydock/am/ca.crt"}}}}}, "config.alertmanager.httpConfig.tls_config.ca_file is /etc/drydock/am/ca.crt, which no pod has: add a secretMounts entry with the path am/ca.crt"},
		"a receiver that nobody makes":         {m{"monitoring": m{"operator": true}, "config": m{"alertmanager": m{"receiver": "drydock"}}}, "makes the receiver drydock/drydock/drydock: its alerts would not count"},
		"https without an authority":           {routeTo(m{"certFile": "/tls.crt", "keyFile": "/tls.key"}, nil), "set alertmanagerConfig.tlsConfig, for example"},
		"mutual TLS without a certificate":     {routeTo(m{"certFile": "/tls.crt", "keyFile": "/tls.key", "clientCAFile": "/ca.crt"}, m{"insecureSkipVerify": true}), "set alertmanagerConfig.tlsConfig.cert and"},
		"an authority without https":           {routeTo(m{}, m{"insecureSkipVerify": true}), "Drydock serves posts without TLS"},
		"an alert that is not there, left out": {m{"prometheusRule": m{"exclude": []any{"NodeNotRedy"}}}, "prometheusRule.exclude: no shipped alert is called NodeNotRedy"},
		"an alert that is not there, changed":  {m{"prometheusRule": m{"customRules": m{"NodeNotRedy": m{"for": "1m"}}}}, "prometheusRule.customRules: no shipped alert is called NodeNotRedy"},
		"a change of an alert that is none":    {m{"prometheusRule": m{"customRules": m{"NodeNotReady": m{"fro": "1m"}}}}, "additional properties 'fro' not allowed"},
		"a threshold that no alert has":        {m{"prometheusRule": m{"customRules": m{"NodeNotReady": m{"threshold": 2}}}}, "prometheusRule.customRules.NodeNotReady.threshold: this alert has no threshold of its own. Write its expr instead. Alerts with one: DrydockCertificateExpiring, MeshForwardingFault, MeshLeaderDegraded, MeshMembersUnreachable, NodeReadinessFlapping, NodesNotReady, SeiNodeSidecarReadinessLost"},
		"a threshold that always holds":        {m{"prometheusRule": m{"customRules": m{"MeshForwardingFault": m{"threshold": 0}}}}, "prometheusRule.customRules.MeshForwardingFault.threshold is 0: write a number from 1 to 1000"},
		"a threshold that never holds":         {m{"prometheusRule": m{"customRules": m{"SeiNodeSidecarReadinessLost": m{"threshold": 11}}}}, "prometheusRule.customRules.SeiNodeSidecarReadinessLost.threshold is 11: write a number from 1 to 10"},
		"a threshold beside an expression":     {m{"prometheusRule": m{"customRules": m{"NodesNotReady": m{"threshold": 0.5, "expr": "vector(0)"}}}}, "at '/prometheusRule/customRules/NodesNotReady': 'not' failed"},
		"a label that no operator selects":     {m{"monitoring": m{"operator": true, "labels": m{"release": ""}}}, "monitoring.labels.release is empty, so no operator would select"},
		"a label without a value":              {m{"monitoring": m{"operator": true, "labels": m{"release": nil}}}, "monitoring.labels.release is empty, so no operator would select"},
		"rules that no operator selects":       {m{"monitoring": m{"operator": true, "labels": m{"release": "kps"}}, "prometheusRule": m{"labels": m{"release": ""}}}, "prometheusRule.labels.release is empty, so no operator would select the rules"},
		"a scrape that no operator selects":    {m{"monitoring": m{"operator": true}, "serviceMonitor": m{"labels": m{"release": ""}}}, "serviceMonitor.labels.release is empty, so no operator would select the scrape"},
		"a route that no operator selects":     {m{"monitoring": m{"operator": true}, "alertmanagerConfig": m{"labels": m{"release": nil}}}, "alertmanagerConfig.labels.release is empty, so no operator would select the route"},
		"probes that no operator selects":      {m{"monitoring": m{"operator": true}, "sidecarProbes": m{"labels": m{"release": ""}}}, "sidecarProbes.labels.release is empty, so no operator would select the probes"},
		"agents that no operator selects":      {m{"monitoring": m{"operator": true}, "agent": m{"enabled": true, "podMonitor": m{"labels": m{"release": ""}}}}, "--set agent.podMonitor.labels.release=NAME"},
		"a name that no Service can have":      {m{"fullnameOverride": "drydock.prod"}, `the objects would be called "drydock.prod"`},
		"a name that begins with a digit":      {m{"fullnameOverride": "2-drydock"}, "Use another release name, or set fullnameOverride"},
		"rights of nobody":                     {m{"serviceAccount": m{"create": false}}, "set serviceAccount.name to the ServiceAccount that Drydock runs as"},
		"a log that the program has not":       {m{"log": m{"format": "xml"}}, "at '/log/format': value must be one of 'json', 'text'"},
		"a toleration that Kubernetes has not": {m{"tolerations": []any{m{"seconds": 3}}}, "tolerations"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := lab.RenderChart("drydock", "drydock", tc.values)
			require.ErrorContains(t, err, tc.says)
		})
	}
}

// TestAnExampleAsItIsConnectsNothing: the example leaves the label empty that the user's Prometheus
// selects, and the chart refuses that. The control: with the label, the chart renders.
func TestAnExampleAsItIsConnectsNothing(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root(t), "charts", "drydock", "examples", "*-values.yaml"))
	require.NoError(t, err)
	tried := 0
	for _, file := range files {
		values, err := common.ReadValuesFile(file)
		require.NoError(t, err)
		operator, ok := values["monitoring"].(m)
		if !ok { // it is for a Prometheus without the operator
			continue
		}
		tried++
		if civo, ok := at(values, "config", "providers", "civo"); ok { // the user fills in these values, too
			civo["clusterID"], civo["region"] = "4711", "LON1"
		}
		_, err = lab.RenderChart("drydock", "drydock", values)
		require.ErrorContains(t, err, "monitoring.labels.release is empty, so no operator would select", filepath.Base(file))
		operator["labels"] = m{"release": "kps"}
		_, err = lab.RenderChart("drydock", "drydock", values)
		require.NoError(t, err, filepath.Base(file))
	}
	require.GreaterOrEqual(t, tried, 5)
}

// at returns the section at that path.
func at(values m, path ...string) (m, bool) {
	for _, key := range path {
		below, ok := values[key].(m)
		if !ok {
			return nil, false
		}
		values = below
	}
	return values, true
}

// TestASectionWithoutAValueIsRefusedOrMeansNothing: Helm removes a section that is null from the
// values. A template must not fail on that with an error of the template language.
func TestASectionWithoutAValueIsRefusedOrMeansNothing(t *testing.T) {
	defaults, err := common.ReadValuesFile(filepath.Join(root(t), "charts", "drydock", "values.yaml"))
	require.NoError(t, err)
	tried, bad := 0, []string{}
	var walk func(path []string, at map[string]any)
	walk = func(path []string, at map[string]any) {
		for _, key := range slices.Sorted(maps.Keys(at)) {
			below := append(slices.Clone(path), key)
			switch further := at[key].(type) {
			case map[string]any:
				walk(below, further)
			case []any:
			default:
				continue
			}
			values := m{"agent": m{"enabled": true}, "monitoring": m{"operator": true}, "grafanaDashboard": m{"enabled": true}, "admission": m{"webhook": m{"enabled": true}}}
			inner := values
			for _, k := range below[:len(below)-1] {
				next, ok := inner[k].(m)
				if !ok {
					next = m{}
					inner[k] = next
				}
				inner = next
			}
			inner[key] = nil
			tried++
			if _, err := lab.RenderChart("drydock", "drydock", values); err != nil && !strings.HasPrefix(err.Error(), "reading the chart's values: ") {
				bad = append(bad, strings.Join(below, "."))
			}
		}
	}
	walk(nil, defaults)
	require.Greater(t, tried, 40)
	require.Empty(t, bad)

	// While a person edits a file of values, some sections are incomplete.
	text := read(t, "charts", "drydock", "values.schema.json")
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	require.NoError(t, compiler.AddResource("values.json", document))
	require.NoError(t, compiler.MustCompile("values.json").Validate(map[string]any{"replicaCount": 3, "image": map[string]any{"tag": "v1"}}))
}

// routeTo returns the values for a route by the operator to a receiver with these TLS settings.
func routeTo(server, client m) m {
	v := m{"monitoring": m{"operator": true}, "config": m{"receiver": m{"tls": server}}}
	if client != nil {
		v["alertmanagerConfig"] = m{"tlsConfig": client}
	}
	return v
}

// TestAlertmanagerPostsOverTLS if the receiver serves TLS. The control: without that, it posts over
// HTTP.
func TestAlertmanagerPostsOverTLS(t *testing.T) {
	hook := func(values m) m {
		var c struct {
			Spec struct {
				Receivers []struct{ WebhookConfigs []m }
			}
		}
		find(t, objects(t, render(t, "drydock", values)), "AlertmanagerConfig", "drydock", &c)
		return c.Spec.Receivers[0].WebhookConfigs[0]
	}
	ca := m{"secret": m{"name": "receiver", "key": "ca.crt"}}
	files := m{"certFile": "/tls.crt", "keyFile": "/tls.key"}
	secure := hook(routeTo(files, m{"ca": ca}))
	require.Equal(t, "https://drydock.drydock:9095/v1/alerts", secure["url"])
	require.Equal(t, m{"ca": ca, "serverName": "drydock.drydock.svc"}, secure["httpConfig"].(m)["tlsConfig"])
	require.Contains(t, secure["httpConfig"], "authorization")

	client := m{"ca": ca, "cert": m{"secret": m{"name": "client", "key": "tls.crt"}}, "keySecret": m{"name": "client", "key": "tls.key"}, "serverName": "d"}
	mutual := hook(routeTo(m{"certFile": "/tls.crt", "keyFile": "/tls.key", "clientCAFile": "/ca.crt"}, client))
	require.Equal(t, client, mutual["httpConfig"].(m)["tlsConfig"])
	require.NotContains(t, mutual["httpConfig"], "authorization", "its certificate is enough")

	plain := hook(m{"monitoring": m{"operator": true}})
	require.Equal(t, "http://drydock.drydock:9095/v1/alerts", plain["url"])
	require.NotContains(t, plain["httpConfig"], "tlsConfig")
}

// TestOneReplicaWithoutALeaderIsNeverTwo: without leader election, two replicas must not run at the
// same time, not even during an upgrade.
func TestOneReplicaWithoutALeaderIsNeverTwo(t *testing.T) {
	strategy := func(values m) appsv1.DeploymentStrategyType {
		var d appsv1.Deployment
		find(t, objects(t, render(t, "drydock", values)), "Deployment", "drydock", &d)
		return d.Spec.Strategy.Type
	}
	require.Equal(t, appsv1.RecreateDeploymentStrategyType, strategy(m{"replicaCount": 1, "config": m{"leaderElection": m{"enabled": false}}}))
	require.Equal(t, appsv1.RollingUpdateDeploymentStrategyType, strategy(m{"replicaCount": 1}))
}

// TestEveryValueIsExplained on the page that helm-docs generates.
func TestEveryValueIsExplained(t *testing.T) {
	page := read(t, "charts", "drydock", "README.md")
	rows := 0
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, "|"); len(cells) > 5 && !strings.HasPrefix(cells[1], "--") {
			rows++
			require.NotEmpty(t, strings.TrimSpace(cells[4]), line)
		}
	}
	require.Greater(t, rows, 40)
}

// TestTheLabsValuesMayBeOfAnyGoType: tests that install the chart may use any Go types in its
// values.
func TestTheLabsValuesMayBeOfAnyGoType(t *testing.T) {
	_, err := lab.RenderChart("drydock", "drydock", m{"config": m{"alertmanager": m{"urls": []string{"http://a:9093"}}, "limits": map[string]int{"concurrent": 2}}})
	require.NoError(t, err)
}
