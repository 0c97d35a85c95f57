{{- /*
Drydock's configuration: config of the values, and the chart's defaults for keys that are missing. A key that is set stays, even
if it is empty. A merge would replace an empty one.
*/ -}}
{{- define "drydock.config" -}}
{{- $c := deepCopy (default dict .Values.config) -}}
{{- include "drydock.under" (list $c "apiVersion" "drydock.dev/v1alpha1") -}}
{{- include "drydock.under" (list $c "kind" "Config") -}}
{{- include "drydock.under" (list $c "mode" "observe") -}}
{{- range $section := list "receiver" "alertmanager" "leaderElection" "ledger" -}}
{{- include "drydock.mapping" (list $c $section) -}}
{{- end -}}
{{- if include "drydock.token.secret" . -}}
{{- include "drydock.under" (list $c.receiver "tokenFile" "/etc/drydock/token") -}}
{{- if not .Values.secrets.receiverToken.name -}}
{{- include "drydock.under" (list $c.receiver "tokenSecret" (dict "namespace" (include "drydock.namespace" .) "name" (include "drydock.token.secret" .) "key" .Values.secrets.receiverToken.key)) -}}
{{- end -}}
{{- end -}}
{{- include "drydock.under" (list $c.alertmanager "urls" (list "http://alertmanager-operated.monitoring:9093")) -}}
{{- if include "drydock.alertmanagerConfig" . -}}
{{- include "drydock.under" (list $c.alertmanager "receiver" (printf "%s/%s/drydock" (include "drydock.namespace" .) (include "drydock.fullname" .))) -}}
{{- end -}}
{{- include "drydock.under" (list $c.leaderElection "namespace" (include "drydock.namespace" .)) -}}
{{- include "drydock.under" (list $c.ledger "namespace" (include "drydock.namespace" .)) -}}
{{- if .Values.metrics.authentication.enabled -}}
{{- include "drydock.mapping" (list $c "metrics") -}}
{{- include "drydock.mapping" (list $c.metrics "tls") -}}
{{- include "drydock.under" (list $c.metrics "authenticate" true) -}}
{{- if include "drydock.metrics.secret" . -}}
{{- include "drydock.under" (list $c.metrics.tls "certFile" "/etc/drydock/metrics/tls.crt") -}}
{{- include "drydock.under" (list $c.metrics.tls "keyFile" "/etc/drydock/metrics/tls.key") -}}
{{- end -}}
{{- end -}}
{{- /* A webhook without a configuration and a certificate would never be ready. */ -}}
{{- if and (not .Values.admission.webhook.enabled) (ne (dig "certificates" "rotate" (default dict $c.webhook)) "mounted") -}}
{{- $_ := unset $c "webhook" -}}
{{- end -}}
{{- if or .Values.admission.webhook.enabled (hasKey $c "webhook") -}}
{{- include "drydock.mapping" (list $c "webhook") -}}
{{- include "drydock.mapping" (list $c.webhook "secret") -}}
{{- include "drydock.under" (list $c.webhook.secret "namespace" (include "drydock.namespace" .)) -}}
{{- include "drydock.under" (list $c.webhook.secret "name" (include "drydock.secret" .)) -}}
{{- include "drydock.under" (list $c.webhook "configuration" (include "drydock.configuration" .)) -}}
{{- include "drydock.under" (list $c.webhook "rights" .Values.admission.rights.enabled) -}}
{{- $host := printf "%s-webhook.%s.svc" (include "drydock.fullname" .) (include "drydock.namespace" .) -}}
{{- with .Values.admission.webhook.url -}}{{- $host = (urlParse .).hostname -}}{{- end -}}
{{- include "drydock.under" (list $c.webhook "dnsNames" (list $host)) -}}
{{- end -}}
{{- with dig "providers" "civo" dict $c -}}
{{- include "drydock.under" (list . "apiKeyFile" "/etc/drydock/civo/api-key") -}}
{{- end -}}
{{- with dig "providers" "hosts" dict $c -}}
{{- include "drydock.under" (list . "keyFile" "/etc/drydock/ssh/key") -}}
{{- include "drydock.under" (list . "knownHostsFile" "/etc/drydock/ssh/known_hosts") -}}
{{- end -}}
{{- if hasKey $c "controlPlane" -}}
{{- include "drydock.under" (list $c "stateDir" "/var/lib/drydock") -}}
{{- end -}}
{{- /* With agents that probe the mesh, Drydock also reports what it would do about it. */ -}}
{{- if .Values.agent.enabled -}}
{{- include "drydock.mapping" (list $c "providers") -}}
{{- include "drydock.mapping" (list $c.providers "kilo") -}}
{{- include "drydock.under" (list $c.providers.kilo "job" (include "drydock.agent.job" .)) -}}
{{- if not .Values.secrets.agentKey.name -}}
{{- include "drydock.under" (list $c.providers.kilo "keySecret" (dict "namespace" (include "drydock.namespace" .) "name" (include "drydock.agent.secret" .) "key" .Values.secrets.agentKey.key)) -}}
{{- end -}}
{{- end -}}
{{- range $sidecar := dig "providers" "sidecars" list $c -}}
{{- if eq $sidecar.name "sei" -}}
{{- include "drydock.under" (list $sidecar "auth" (dict "serviceAccount" (dict "name" (printf "%s-sidecars" (include "drydock.fullname" $))))) -}}
{{- end -}}
{{- with dig "serviceAccount" dict (default dict $sidecar.auth) -}}
{{- include "drydock.under" (list . "namespace" (include "drydock.namespace" $)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $c -}}
{{- end -}}

{{- /* list MAP KEY VALUE: sets a key that is not there. */ -}}
{{- define "drydock.under" -}}
{{- if not (hasKey (index . 0) (index . 1)) -}}{{- $_ := set (index . 0) (index . 1) (index . 2) -}}{{- end -}}
{{- end -}}

{{- /* list MAP KEY: makes a mapping of a key that is not there, or has no value. */ -}}
{{- define "drydock.mapping" -}}
{{- if not (get (index . 0) (index . 1)) -}}{{- $_ := set (index . 0) (index . 1) dict -}}{{- end -}}
{{- end -}}

{{- /* list ROOT FILE: whether secretMounts has that file: "true", or nothing. */ -}}
{{- define "drydock.mounted" -}}
{{- $file := index . 1 -}}
{{- range (index . 0).Values.secretMounts -}}
{{- if eq $file (printf "/etc/drydock/%s" .path) -}}true{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The Secret of the receiver's token. Empty: posts are authenticated in another way, or not at all. */ -}}
{{- define "drydock.token.secret" -}}
{{- $receiver := default dict .Values.config.receiver -}}
{{- $elsewhere := ne (default "/etc/drydock/token" $receiver.tokenFile) "/etc/drydock/token" -}}
{{- if .Values.secrets.receiverToken.name -}}
{{- .Values.secrets.receiverToken.name -}}
{{- else if not (or $elsewhere $receiver.insecure (dig "tls" "clientCAFile" "" $receiver)) -}}
{{- include "drydock.fullname" . -}}-token
{{- end -}}
{{- end -}}

{{- /* list ADDRESS DEFAULT: the port of an address, for example of ":9095". */ -}}
{{- define "drydock.port" -}}
{{- regexFind "[0-9]+$" (default (printf ":%v" (index . 1)) (index . 0)) -}}
{{- end -}}

{{- /* "true" if the operator makes Alertmanager's route; otherwise empty. */ -}}
{{- define "drydock.alertmanagerConfig" -}}
{{- if and .Values.monitoring.operator .Values.alertmanagerConfig.enabled (or (include "drydock.token.secret" .) (dig "tls" "clientCAFile" "" (default dict .Values.config.receiver))) -}}true{{- end -}}
{{- end -}}

{{- /*
"true" if any policy can drain a node; otherwise empty. A policy that enforces drains if the drain is the last step of its plan, or
comes before a step that a configured provider carries out. A replacement that a person requests begins with a drain, whatever
steps the plan has before it.
*/ -}}
{{- define "drydock.drains" -}}
{{- $providers := default dict .Values.config.providers -}}
{{- $steps := list -}}
{{- range $provider, $carries := include "drydock.steps" . | fromYaml -}}
{{- range $step, $needs := $carries -}}
{{- if and (hasKey $providers $provider) (or (not $needs) (get (default dict (get $providers $provider)) $needs)) -}}{{- $steps = append $steps $step -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- $mode := default "observe" .Values.config.mode -}}
{{- $shipped := include "drydock.shipped.drain" . | fromYaml -}}
{{- /* The steps of each policy that enforces. Of a shipped plan, only the steps from its drain on are needed. */ -}}
{{- $plans := ternary (deepCopy $shipped) dict (eq $mode "enforce") -}}
{{- range .Values.config.policies -}}
{{- $plan := default list (get $shipped .name) -}}
{{- if hasKey . "plan" -}}
{{- $plan = list -}}
{{- range .plan -}}{{- $plan = append $plan .step -}}{{- end -}}
{{- end -}}
{{- $_ := set $plans .name (ternary $plan list (eq (default $mode .mode) "enforce")) -}}
{{- end -}}
{{- $drains := and (eq $mode "enforce") (has "replace" $steps) -}}
{{- range $plan := $plans -}}
{{- $after := false -}}
{{- range $plan -}}
{{- if eq . "drain" -}}{{- $after = true -}}{{- end -}}
{{- if and (has . $steps) (or $after (has . (list "replace" "external-replace"))) -}}{{- $drains = true -}}{{- end -}}
{{- end -}}
{{- if and $plan (eq (last $plan) "drain") -}}{{- $drains = true -}}{{- end -}}
{{- end -}}
{{- if $drains -}}true{{- end -}}
{{- end -}}

{{- /*
The steps on nodes that each provider carries out, and the key below the provider's own that a step needs; "": none. A test compares
them with the program's.
*/ -}}
{{- define "drydock.steps" -}}
annotation: {reboot: ""}
civo: {reboot: "", replace: ""}
clusterAPI: {replace: ""}
clusterWide: {rollout-restart: rolloutRestart, apply-cni: cni}
daemonSets: {restart-kube-proxy: kubeProxy, restart-cni: cni}
external: {external: "", external-replace: ""}
fence: {reboot: "", powerOff: ""}
hosts: {restart-kubelet: "", restart-containerd: "", restart-unit: units, reboot: reboot, sysrq: sysrq}
http: {reboot: reboot, powerOff: powerOff, replace: replace}
karpenter: {replace: ""}
redfish: {reboot: ""}
{{- end -}}

{{- /*
The shipped policies that drain a node, with the steps from the drain on: a policy without a plan of its own has the shipped one. A test
compares them with the shipped plans.
*/ -}}
{{- define "drydock.shipped.drain" -}}
cilium-agent-not-ready: [drain, replace]
gpu-node-disk-pressure: [drain, reboot]
gpu-node-filesystem-read-only: [drain, reboot]
gpu-node-problem-detected: [drain, reboot]
gpu-node-subsystem-not-ready: [drain, reboot]
node-disk-pressure: [drain, replace]
node-filesystem-read-only: [drain, reboot]
node-gpu-fault: [drain, reboot]
node-heartbeat-lost: [drain, replace]
node-kernel-deadlock: [drain, replace]
node-not-ready: [drain, replace]
node-problem-detected: [drain, reboot, replace]
node-subsystem-not-ready: [drain, reboot]
{{- end -}}
