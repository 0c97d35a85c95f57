{{- /* Configurations that this chart refuses. */ -}}
{{- define "drydock.config.checks" -}}
{{- include "drydock.checks.renamed" . -}}
{{- include "drydock.checks.names" . -}}
{{- include "drydock.checks.webhook" . -}}
{{- $c := include "drydock.config" . | fromYaml -}}
{{- range $key := list "ledger" "leaderElection" -}}
{{- if ne (get (get $c $key) "namespace") (include "drydock.namespace" $) -}}
{{- fail (printf "config.%s.namespace must be the release's namespace, %s: the chart gives Drydock its rights there" $key (include "drydock.namespace" $)) -}}
{{- end -}}
{{- end -}}
{{- if and (dig "providers" "civo" dict $c) (not .Values.secrets.civoAPIKey.name) (not (include "drydock.mounted" (list . (dig "providers" "civo" "apiKeyFile" "" $c)))) -}}
{{- fail "config.providers.civo needs its API key: set secrets.civoAPIKey.name to the Secret that holds it" -}}
{{- end -}}
{{- if and (dig "providers" "hosts" dict $c) (not .Values.secrets.hostsKey.name) (not (include "drydock.mounted" (list . (dig "providers" "hosts" "keyFile" "" $c)))) -}}
{{- fail "config.providers.hosts needs its SSH key: set secrets.hostsKey.name to the Secret that holds it, and the hosts' own keys" -}}
{{- end -}}
{{- $authenticates := dig "metrics" "authenticate" false $c -}}
{{- if and .Values.metrics.authentication.enabled (not $authenticates) -}}
{{- fail "metrics.authentication.enabled and config.metrics.authenticate: false contradict each other: remove one of them" -}}
{{- end -}}
{{- if and $authenticates (not (dig "metrics" "tls" "certFile" "" $c)) -}}
{{- fail "the metrics' authentication needs a certificate: set metrics.authentication.secret to the Secret that holds it, or metrics.authentication.certManager.enabled" -}}
{{- end -}}
{{- if and .Values.metrics.authentication.secret .Values.metrics.authentication.certManager.enabled -}}
{{- fail "metrics.authentication.secret and metrics.authentication.certManager.enabled exclude each other: cert-manager writes a Secret of its own" -}}
{{- end -}}
{{- if not (or .Values.serviceAccount.create .Values.serviceAccount.name) -}}
{{- fail "serviceAccount.create is false: set serviceAccount.name to the ServiceAccount that Drydock runs as. The chart gives its rights to that account" -}}
{{- end -}}
{{- include "drydock.checks.second" . -}}
{{- include "drydock.checks.rules" . -}}
{{- range $sidecar := dig "providers" "sidecars" list $c -}}
{{- with dig "serviceAccount" dict (default dict $sidecar.auth) -}}
{{- if ne .namespace (include "drydock.namespace" $) -}}
{{- fail (printf "config.providers.sidecars: the ServiceAccount of %s must be in the release's namespace, %s: the chart makes it there" $sidecar.name (include "drydock.namespace" $)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "drydock.checks.servers" (list . $c) -}}
{{- include "drydock.checks.delivery" (list . $c) -}}
{{- include "drydock.checks.files" . -}}
{{- end -}}

{{- /* Values that have another name now. The schema lets them through, so that this sentence can name the new one. */ -}}
{{- define "drydock.checks.renamed" -}}
{{- range list (list .Values "replicas" "replicas" "replicaCount")
  (list .Values "prometheusOperator" "prometheusOperator" "monitoring, and monitoring.operator for prometheusOperator.enabled")
  (list .Values.image "pullSecrets" "image.pullSecrets" "imagePullSecrets") -}}
{{- if hasKey (index . 0) (index . 1) -}}
{{- fail (printf "the value %s was renamed: set %s" (index . 2) (index . 3)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Settings of a webhook that is off, and a strategy that would let two pods repair. The policy also reads exempt, drivers and rights. */ -}}
{{- define "drydock.checks.webhook" -}}
{{- $webhook := default dict .Values.config.webhook -}}
{{- $alone := omit $webhook "exempt" "drivers" "rights" -}}
{{- if and (hasKey .Values.config "webhook") (or $alone (not $webhook)) (not .Values.admission.webhook.enabled) (ne (dig "certificates" "rotate" $webhook) "mounted") -}}
{{- fail "config.webhook has settings of the admission webhook, and admission.webhook.enabled is false: set admission.webhook.enabled to true, or remove config.webhook" -}}
{{- end -}}
{{- if and .Values.strategy (ne (get .Values.strategy "type") "Recreate") (not (dig "enabled" true (default dict .Values.config.leaderElection))) -}}
{{- fail "config.leaderElection.enabled is false, and strategy lets an upgrade start the new pod beside the old one: both would repair. Set strategy.type to Recreate, or leave strategy empty" -}}
{{- end -}}
{{- end -}}

{{- /* A name that a Service cannot have, and labels that no operator selects by. */ -}}
{{- define "drydock.checks.names" -}}
{{- $name := include "drydock.fullname" . -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) -}}
{{- fail (printf "the objects would be called %q, which is not a valid name of a Service: it must begin with a letter, and have only lower case letters, digits and dashes. Use another release name, or set fullnameOverride" $name) -}}
{{- end -}}
{{- if .Values.monitoring.operator -}}
{{- range list
  (list "monitoring" true .Values.monitoring "the rules, the scrape and the route")
  (list "prometheusRule" .Values.prometheusRule.enabled .Values.prometheusRule "the rules")
  (list "serviceMonitor" .Values.serviceMonitor.enabled .Values.serviceMonitor "the scrape")
  (list "alertmanagerConfig" .Values.alertmanagerConfig.enabled .Values.alertmanagerConfig "the route")
  (list "sidecarProbes" (default dict .Values.sidecarProbes).enabled (default dict .Values.sidecarProbes) "the probes of the sidecars")
  (list "agent.podMonitor" (and .Values.agent.enabled .Values.agent.podMonitor.enabled) .Values.agent.podMonitor "the scrape of the agents")
-}}
{{- $path := index . 0 -}}
{{- $made := index . 1 -}}
{{- $selected := index . 3 -}}
{{- range $key, $value := (index . 2).labels -}}
{{- if and $made (not $value) -}}
{{- fail (printf "%s.labels.%s is empty, so no operator would select %s: set it to the value that your Prometheus selects. For kube-prometheus-stack, release is the name of its own release (helm list -A): --set %s.labels.%s=NAME" $path $key $selected $path $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Rules that the values leave out or change, and that are not in rules/. */ -}}
{{- define "drydock.checks.rules" -}}
{{- $files := list -}}
{{- $alerts := list -}}
{{- range $path, $_ := .Files.Glob "rules/*.yaml" -}}
{{- $files = append $files (trimSuffix ".yaml" (base $path)) -}}
{{- range ($.Files.Get $path | fromYaml).groups -}}{{- range .rules -}}{{- with .alert -}}{{- $alerts = append $alerts . -}}{{- end -}}{{- end -}}{{- end -}}
{{- end -}}
{{- range .Values.prometheusRule.exclude -}}
{{- if not (has . $files) -}}{{- fail (printf "prometheusRule.exclude: no shipped alert is called %s. `drydock rules` prints them all" .) -}}{{- end -}}
{{- end -}}
{{- $thresholds := include "drydock.thresholds" . | fromYaml -}}
{{- range $name, $custom := .Values.prometheusRule.customRules -}}
{{- if not (has $name $alerts) -}}{{- fail (printf "prometheusRule.customRules: no shipped alert is called %s. `drydock rules` prints them all" $name) -}}{{- end -}}
{{- if and (hasKey $custom "threshold") (not (hasKey $thresholds $name)) -}}
{{- fail (printf "prometheusRule.customRules.%s.threshold: this alert has no threshold of its own. Write its expr instead. Alerts with one: %s" $name (keys $thresholds | sortAlpha | join ", ")) -}}
{{- end -}}
{{- if hasKey $custom "threshold" -}}
{{- with get (include "drydock.thresholdRanges" $ | fromYaml) $name -}}
{{- if or (lt (float64 $custom.threshold) (float64 .min)) (gt (float64 $custom.threshold) (float64 .max)) -}}
{{- fail (printf "prometheusRule.customRules.%s.threshold is %v: write a number from %v to %v, or leave the alert out by prometheusRule.exclude" $name $custom.threshold .min .max) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The thresholds of rules/ that may be changed by number: the comparison, as it stands in the expression. */ -}}
{{- define "drydock.thresholds" -}}
DrydockCertificateExpiring: "< 1209600"
MeshForwardingFault: ">= 2"
MeshLeaderDegraded: ">= 2"
MeshMembersUnreachable: ">= 1"
NodeReadinessFlapping: ">= 4"
NodesNotReady: "> 0.3"
SeiNodeSidecarReadinessLost: ">= 5"
{{- end -}}

{{- /* Outside these ranges an alert would fire without a fault, or never. */ -}}
{{- define "drydock.thresholdRanges" -}}
MeshForwardingFault: {min: 1, max: 1000}
MeshLeaderDegraded: {min: 1, max: 1000}
MeshMembersUnreachable: {min: 1, max: 1000}
SeiNodeSidecarReadinessLost: {min: 1, max: 10}
{{- end -}}

{{- /* list ROOT CONFIG: addresses that no client can reach, and replicas that would repair at the same time. */ -}}
{{- define "drydock.checks.servers" -}}
{{- $root := index . 0 -}}
{{- $c := index . 1 -}}
{{- if and (not (dig "enabled" true $c.leaderElection)) (gt (int $root.Values.replicaCount) 1) -}}
{{- fail (printf "config.leaderElection.enabled is false and replicaCount is %d: each replica would repair on its own. Set replicaCount to 1, or remove config.leaderElection.enabled" (int $root.Values.replicaCount)) -}}
{{- end -}}
{{- $ports := dict -}}
{{- range $key, $port := dict "receiver" 9095 "metrics" 8080 "health" 8081 "webhook" 9443 -}}
{{- if or (ne $key "webhook") (hasKey $c "webhook") -}}
{{- $listen := dig $key "listen" "" $c -}}
{{- if regexMatch "^(127[.]|localhost:|\\[::1\\]:)" $listen -}}
{{- fail (printf "config.%s.listen is %s: only the pod itself reaches that address. Write :%s, or remove the key" $key $listen (include "drydock.port" (list $listen $port))) -}}
{{- end -}}
{{- $number := include "drydock.port" (list $listen $port) -}}
{{- with get $ports $number -}}
{{- fail (printf "config.%s.listen and config.%s.listen have the same port, %s. Write another port for one of them" . $key $number) -}}
{{- end -}}
{{- $_ := set $ports $number $key -}}
{{- end -}}
{{- end -}}
{{- with $root.Values.admission.webhook.url -}}
{{- $host := (urlParse .).hostname -}}
{{- if and (hasKey $c "webhook") (not (has $host $c.webhook.dnsNames)) -}}
{{- fail (printf "admission.webhook.url has the host %s, which config.webhook.dnsNames lacks: the API server would refuse the certificate. Add the host, or remove config.webhook.dnsNames" $host) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* list ROOT CONFIG: a route of the operator whose posts would not arrive, or would not count. */ -}}
{{- define "drydock.checks.delivery" -}}
{{- $root := index . 0 -}}
{{- $c := index . 1 -}}
{{- $tls := default dict $c.receiver.tls -}}
{{- $client := $root.Values.alertmanagerConfig.tlsConfig -}}
{{- $people := $root.Values.alertmanagerConfig.people -}}
{{- if and (or $people.handled $people.chat) (not $people.pager) -}}
{{- fail "alertmanagerConfig.people needs the receiver pager: set alertmanagerConfig.people.pager, or no person would be notified when Drydock gives up" -}}
{{- end -}}
{{- if and $people.handled (not (include "drydock.enforces" $root)) -}}
{{- fail "alertmanagerConfig.people.handled keeps alerts from the pager, and no policy enforces: set mode: enforce for the policies that handle these alerts, or remove alertmanagerConfig.people.handled" -}}
{{- end -}}
{{- if and $people.pager (not (include "drydock.alertmanagerConfig" $root)) -}}
{{- fail "alertmanagerConfig.people has an effect only with the AlertmanagerConfig of the chart: set monitoring.operator and alertmanagerConfig.enabled, or remove alertmanagerConfig.people" -}}
{{- end -}}
{{- if and $root.Values.monitoring.operator $root.Values.alertmanagerConfig.enabled -}}
{{- if not (include "drydock.alertmanagerConfig" $root) -}}
{{- fail "alertmanagerConfig.enabled needs a token: remove config.receiver.tokenFile, config.receiver.insecure and config.receiver.tls.clientCAFile, or set alertmanagerConfig.enabled to false and write the route yourself" -}}
{{- end -}}
{{- $ours := printf "%s/%s/drydock" (include "drydock.namespace" $root) (include "drydock.fullname" $root) -}}
{{- if ne $c.alertmanager.receiver $ours -}}
{{- fail (printf "config.alertmanager.receiver is %s, and the AlertmanagerConfig makes the receiver %s: its alerts would not count. Remove config.alertmanager.receiver, or set alertmanagerConfig.enabled to false" $c.alertmanager.receiver $ours) -}}
{{- end -}}
{{- if and $tls.certFile (not (or $client.ca $client.insecureSkipVerify)) -}}
{{- fail "config.receiver.tls.certFile is set, so Alertmanager must know which authority to trust: set alertmanagerConfig.tlsConfig, for example {ca: {secret: {name: SECRET, key: ca.crt}}}" -}}
{{- end -}}
{{- if and $tls.clientCAFile (not (and $client.cert $client.keySecret)) -}}
{{- fail "config.receiver.tls.clientCAFile is set, so Alertmanager must show a certificate: set alertmanagerConfig.tlsConfig.cert and alertmanagerConfig.tlsConfig.keySecret" -}}
{{- end -}}
{{- if and $client (not $tls.certFile) -}}
{{- fail "alertmanagerConfig.tlsConfig is set, but Drydock serves posts without TLS: set config.receiver.tls.certFile and keyFile, or remove alertmanagerConfig.tlsConfig" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* A file below /etc/drydock that the configuration names and no pod has. */ -}}
{{- define "drydock.checks.files" -}}
{{- range splitList "\n" (include "drydock.files" (list "config" (include "drydock.config" . | fromYaml))) -}}
{{- $named := splitList " " . -}}
{{- $file := last $named -}}
{{- if hasPrefix "/etc/drydock/" $file -}}
{{- if not (or (has $file (include "drydock.own.files" $ | splitList "\n")) (include "drydock.mounted" (list $ $file)) (include "drydock.extra" (list $ $file))) -}}
{{- fail (printf "%s is %s, which no pod has: add a secretMounts entry with the path %s" (first $named) $file (trimPrefix "/etc/drydock/" $file)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* list PATH VALUE: a line for each file that the value names, with its path in the configuration. */ -}}
{{- define "drydock.files" -}}
{{- $path := index . 0 -}}
{{- range $key, $value := index . 1 -}}
{{- $at := kindIs "string" $key | ternary (printf "%s.%v" $path $key) (printf "%s[%v]" $path $key) -}}
{{- if or (kindIs "map" $value) (kindIs "slice" $value) -}}
{{- include "drydock.files" (list $at $value) -}}
{{- else if and (kindIs "string" $value) (regexMatch "(File|_file|[.]kubeconfig)$" $at) }}
{{ $at }} {{ $value }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* list ROOT FILE: whether extraVolumeMounts has a folder or a file for it: "true", or nothing. */ -}}
{{- define "drydock.extra" -}}
{{- $file := index . 1 -}}
{{- range (index . 0).Values.extraVolumeMounts -}}
{{- if or (eq $file .mountPath) (hasPrefix (printf "%s/" (trimSuffix "/" .mountPath)) $file) -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The files below /etc/drydock that the chart itself mounts. */ -}}
{{- define "drydock.own.files" -}}
{{- with include "drydock.token.secret" . }}
/etc/drydock/token
{{- end }}
{{- with .Values.secrets.civoAPIKey.name }}
/etc/drydock/civo/api-key
{{- end }}
{{- with .Values.secrets.hostsKey.name }}
/etc/drydock/ssh/key
/etc/drydock/ssh/known_hosts
{{- end }}
{{- with include "drydock.metrics.secret" . }}
/etc/drydock/metrics/tls.crt
/etc/drydock/metrics/tls.key
{{- end }}
{{- end -}}

{{- /* The Lease of the one Drydock that is in charge of the cluster. */ -}}
{{- define "drydock.cluster.lease" -}}
{{- $given := dig "leaderElection" "cluster" dict (default dict .Values.config) | default dict -}}
{{- dict "namespace" (default "kube-system" $given.namespace) "name" (default "drydock" $given.name) | toYaml -}}
{{- end -}}

{{- /* Another release in this cluster, by the cluster's Lease. `helm template` and a dry run on the client see none. */ -}}
{{- define "drydock.checks.second" -}}
{{- $at := include "drydock.cluster.lease" . | fromYaml -}}
{{- $lease := lookup "coordination.k8s.io/v1" "Lease" $at.namespace $at.name -}}
{{- if $lease -}}
{{- $notes := default dict $lease.metadata.annotations -}}
{{- $holder := dig "spec" "holderIdentity" "" $lease -}}
{{- $other := "" -}}
{{- if get $notes "meta.helm.sh/release-name" -}}
{{- if or (ne (get $notes "meta.helm.sh/release-name") .Release.Name) (ne (get $notes "meta.helm.sh/release-namespace") .Release.Namespace) -}}
{{- $other = printf "release %s in namespace %s" (get $notes "meta.helm.sh/release-name") (get $notes "meta.helm.sh/release-namespace") -}}
{{- end -}}
{{- else if and $holder (ne (first (splitList "/" $holder)) (include "drydock.namespace" .)) -}}
{{- $other = printf "the installation %s" $holder -}}
{{- end -}}
{{- if and $other (not .Values.allowSecondRelease) -}}
{{- fail (printf "this cluster has a Drydock already: %s (Lease %s/%s). Two Drydocks deny each other their writes. Upgrade or uninstall that one, or set allowSecondRelease to true: the second release then changes nothing. When the first one is uninstalled, upgrade the second one without that value" $other $at.namespace $at.name) -}}
{{- end -}}
{{- if and $other (or .Values.admission.policy.enabled (include "drydock.webhook" .)) -}}
{{- fail (printf "this cluster has a Drydock already: %s. Its writes would be denied by the admission of this release: set admission.policy.enabled and admission.webhook.enabled to false, until the first one is gone" $other) -}}
{{- end -}}
{{- end -}}
{{- end -}}
