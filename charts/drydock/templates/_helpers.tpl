{{- define "drydock.fullname" -}}
{{- $name := .Release.Name -}}
{{- if and .Values.nameOverride (not (contains .Values.nameOverride $name)) -}}
{{- $name = printf "%s-%s" $name .Values.nameOverride -}}
{{- end -}}
{{- default $name .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- /* The namespace of the release's objects. */ -}}
{{- define "drydock.namespace" -}}
{{- default .Release.Namespace .Values.namespaceOverride -}}
{{- end -}}

{{- define "drydock.selector" -}}
app.kubernetes.io/name: {{ default "drydock" .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- /*
dict "root" ROOT, and "labels", "annotations" of one object, and "agent" where the object is the agents': the labels and
annotations of an object. A key that is set twice appears once: the object's own value overrides that of all objects. The
labels that select the pods override both.
*/ -}}
{{- define "drydock.metadata" -}}
{{- $selector := include (ternary "drydock.agent.selector" "drydock.selector" (default false .agent)) .root | fromYaml -}}
{{- $chart := .root.Chart -}}
{{- $standard := dict "helm.sh/chart" (printf "%s-%s" $chart.Name $chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-") "app.kubernetes.io/version" $chart.AppVersion "app.kubernetes.io/managed-by" .root.Release.Service -}}
labels: {{- merge dict $selector (default dict .labels) .root.Values.commonLabels $standard | toYaml | nindent 2 }}
{{- with merge dict (default dict .annotations) .root.Values.commonAnnotations }}
annotations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* The ServiceAccount that Drydock runs as. */ -}}
{{- define "drydock.serviceAccount" -}}
{{- default (include "drydock.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- /* list ROOT LABELS: the labels of an object that the Prometheus operator selects by labels. */ -}}
{{- define "drydock.operator.own" -}}
{{- merge dict (default dict (index . 1)) (default dict (index . 0).Values.monitoring.labels) | toYaml -}}
{{- end -}}

{{- /* list ROOT LABELS: these labels as text, without the chart's own. */ -}}
{{- define "drydock.operator.only" -}}
{{- $all := include "drydock.operator.own" . | fromYaml -}}
{{- range $i, $key := keys $all | sortAlpha }}{{ if $i }}, {{ end }}{{ $key }}={{ get $all $key }}
{{- else }}no labels; by default kube-prometheus-stack selects only objects with its label release{{ end -}}
{{- end -}}

{{- define "drydock.image" -}}
{{- .Values.image.repository -}}
{{- if .Values.image.digest -}}@{{ .Values.image.digest }}{{- else -}}:{{ default .Chart.AppVersion .Values.image.tag }}{{- end -}}
{{- end -}}

{{- /* The image pull secrets of all pods, as a list: the chart's own, and those of a parent chart (global), each a name or {name: …}. */ -}}
{{- define "drydock.pullSecrets" -}}
{{- $all := default list .Values.imagePullSecrets -}}
{{- range default list (dig "imagePullSecrets" list (default dict .Values.global)) -}}
{{- $all = append $all (kindIs "string" . | ternary (dict "name" .) .) -}}
{{- end -}}
{{- uniq $all | toJson -}}
{{- end -}}

{{- /* The mesh's agent: its objects' name, its pods' labels, its image, and the Secret of its key. */ -}}
{{- define "drydock.agent" -}}
{{- include "drydock.fullname" . | trunc 57 | trimSuffix "-" }}-agent
{{- end -}}

{{- define "drydock.agent.selector" -}}
app.kubernetes.io/name: {{ default "drydock" .Values.nameOverride }}-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "drydock.agent.image" -}}
{{- $image := .Values.agent.image -}}
{{- if $image.repository -}}
{{- $image.repository -}}
{{- if $image.digest -}}@{{ $image.digest }}{{- else -}}:{{ default .Chart.AppVersion $image.tag }}{{- end -}}
{{- else -}}
{{- include "drydock.image" . -}}
{{- end -}}
{{- end -}}

{{- define "drydock.agent.secret" -}}
{{- default (printf "%s-key" (include "drydock.agent" .)) .Values.secrets.agentKey.name -}}
{{- end -}}

{{- /* The user that Drydock is for the API server. */ -}}
{{- define "drydock.user" -}}
system:serviceaccount:{{ include "drydock.namespace" . }}:{{ include "drydock.serviceAccount" . }}
{{- end -}}

{{- /* "true" if anything in the configuration enforces; otherwise empty. */ -}}
{{- define "drydock.enforces" -}}
{{- $enforces := eq (default "observe" .Values.config.mode) "enforce" -}}
{{- range .Values.config.policies -}}
{{- if eq (default "" .mode) "enforce" -}}{{- $enforces = true -}}{{- end -}}
{{- end -}}
{{- if $enforces -}}true{{- end -}}
{{- end -}}

{{- /* "true" if Drydock serves a webhook; otherwise empty. */ -}}
{{- define "drydock.webhook" -}}
{{- if .Values.admission.webhook.enabled -}}true{{- end -}}
{{- end -}}

{{- /* "true" if Drydock makes the webhook's certificate itself; otherwise empty. */ -}}
{{- define "drydock.rotates" -}}
{{- $webhook := default dict .Values.config.webhook -}}
{{- if and (include "drydock.webhook" .) (eq (default "rotate" $webhook.certificates) "rotate") -}}
{{- if .Values.admission.certManager.enabled -}}
{{- fail "admission.certManager.enabled needs config.webhook.certificates to be \"mounted\", or both would write the certificate" -}}
{{- end -}}
true
{{- end -}}
{{- end -}}

{{- /* "true" if the webhook also checks evictions; otherwise empty. */ -}}
{{- define "drydock.evictions" -}}
{{- $webhook := default dict .Values.config.webhook -}}
{{- if and (include "drydock.webhook" .) $webhook.evictions -}}true{{- end -}}
{{- end -}}

{{- define "drydock.secret" -}}
{{- $webhook := default dict .Values.config.webhook -}}
{{- dig "secret" "name" (printf "%s-webhook" (include "drydock.fullname" .)) $webhook -}}
{{- end -}}

{{- define "drydock.configuration" -}}
{{- $webhook := default dict .Values.config.webhook -}}
{{- dig "configuration" (include "drydock.fullname" .) $webhook -}}
{{- end -}}

{{- /* Users that may change a node under repair, as lists in CEL. Drydock has the first of each list built in. */ -}}
{{- define "drydock.exempt.users" -}}
{{- $webhook := default dict .Values.config.webhook -}}
{{- concat (list "system:kube-controller-manager" "system:cloud-controller-manager") (default list (dig "exempt" "users" list $webhook)) | toJson -}}
{{- end -}}
{{- define "drydock.exempt.groups" -}}
{{- $webhook := default dict .Values.config.webhook -}}
{{- concat (list "system:serviceaccounts:kube-system") (default list (dig "exempt" "groups" list $webhook)) | toJson -}}
{{- end -}}
{{- /* list ROOT PROVIDERS: the users that these providers' own systems change Nodes as while they replace a machine, as a list in CEL.
Only providers that are configured. */ -}}
{{- define "drydock.workers" -}}
{{- $users := list -}}
{{- $providers := default dict (index . 0).Values.config.providers -}}
{{- $byDefault := dict "clusterAPI" "kubernetes-admin" "karpenter" "system:serviceaccount:karpenter:karpenter" "external" "system:serviceaccount:openshift-machine-api:machine-api-controllers" -}}
{{- range $key := index . 1 -}}
{{- if hasKey $providers $key -}}
{{- $users = concat $users (dig "users" (list (get $byDefault $key)) (default dict (get $providers $key))) -}}
{{- end -}}
{{- end -}}
{{- default list $users | toJson -}}
{{- end -}}

{{- /* The users that install drivers on Nodes, as a list in CEL: the shipped entries, which Drydock also has, changed by name. */ -}}
{{- define "drydock.drivers" -}}
{{- $entries := dict
  "nvidia-gpu-operator" (list "system:serviceaccount:gpu-operator:nvidia-driver" "system:serviceaccount:gpu-operator:nvidia-mig-manager" "system:serviceaccount:nvidia-gpu-operator:nvidia-driver" "system:serviceaccount:nvidia-gpu-operator:nvidia-mig-manager")
  "nvidia-network-operator" (list "system:serviceaccount:nvidia-network-operator:ofed-driver")
  "amd-gpu-operator" (list "system:serviceaccount:kube-amd-gpu:amd-gpu-operator-gpu-operator-charts-controller-manager" "system:serviceaccount:openshift-amd-gpu:amd-gpu-operator-controller-manager")
-}}
{{- range $name, $users := default dict (default dict .Values.config.webhook).drivers -}}
{{- $_ := set $entries $name $users -}}
{{- end -}}
{{- $all := list -}}
{{- range $users := $entries -}}{{- $all = concat $all $users -}}{{- end -}}
{{- default list $all | toJson -}}
{{- end -}}

{{- define "drydock.cel.exempt" -}}
(request.userInfo.?username.orValue('') in {{ include "drydock.exempt.users" . }} ||
 request.userInfo.?groups.orValue([]).exists(g, g in {{ include "drydock.exempt.groups" . }}))
{{- end -}}

{{- /*
Two conditions in CEL: key k is in Drydock's domain, and only Drydock may write key k. They run in loops over all keys of a Node, so
they evaluate all of their parts (see validatingadmissionpolicy.yaml). No key has two of these prefixes.
*/ -}}
{{- define "drydock.cel.ours" -}}
((k.startsWith('drydock.dev/') != k.startsWith('alert.drydock.dev/')) != k.startsWith('repair.drydock.dev/'))
{{- end -}}
{{- define "drydock.cel.own" -}}
((k.startsWith('alert.drydock.dev/') != k.startsWith('repair.drydock.dev/')) != (k in ['drydock.dev/history', 'drydock.dev/phase']))
{{- end -}}
{{- /*
The largest number of labels, or of annotations, whose names are searched. It is many times what a real Node has. It is far below
about 30000, where an expression exceeds the API server's cost limit, fails, and lets the request through.
*/ -}}
{{- define "drydock.cel.most" -}}5000{{- end -}}

{{- /* "true" if people's requests need rights of their own; otherwise empty. */ -}}
{{- define "drydock.rights" -}}
{{- if and .Values.admission.rights.enabled (dig "rights" true (default dict .Values.config.webhook)) -}}true{{- end -}}
{{- end -}}

{{- /* The ClusterRole that has these rights. */ -}}
{{- define "drydock.operator" -}}
{{- include "drydock.fullname" . | trunc 54 | trimSuffix "-" }}-operator
{{- end -}}

{{- /* The jobs that scrape the agents, for the rules and for Drydock's own queries of Prometheus. */ -}}
{{- define "drydock.agent.job" -}}
{{- include "drydock.job" (list .Values.prometheusRule.jobs.agent (printf "%s/%s" (include "drydock.namespace" .) (include "drydock.agent" .))) -}}
{{- end -}}

{{- /* A regular expression of jobs that matches this name, too. */ -}}
{{- define "drydock.job" -}}
{{- $jobs := index . 0 -}}
{{- if regexMatch (printf "^(?:%s)$" $jobs) (index . 1) }}{{ $jobs }}{{ else }}{{ $jobs }}|{{ index . 1 }}{{ end -}}
{{- end -}}

{{- /* The label with the cluster's name. */ -}}
{{- define "drydock.clusterLabel" -}}
{{- default "cluster" (dig "cluster" "label" "" .Values.config) -}}
{{- end -}}

{{- /* "true" if Drydock asks the API server who scrapes; otherwise empty. */ -}}
{{- define "drydock.metrics.authenticates" -}}
{{- if dig "metrics" "authenticate" false (include "drydock.config" . | fromYaml) -}}true{{- end -}}
{{- end -}}

{{- /* "true" if the metrics are served over TLS; otherwise empty. */ -}}
{{- define "drydock.metrics.tls" -}}
{{- if dig "metrics" "tls" "certFile" "" (include "drydock.config" . | fromYaml) -}}true{{- end -}}
{{- end -}}

{{- /* The Secret with the certificate of the metrics' port. Empty: the chart knows none. */ -}}
{{- define "drydock.metrics.secret" -}}
{{- with .Values.metrics.authentication -}}
{{- if not .enabled -}}{{- else if .secret -}}{{ .secret }}{{- else if .certManager.enabled -}}{{ include "drydock.metrics" $ }}{{- end -}}
{{- end -}}
{{- end -}}

{{- /* The name of the ClusterRole for scraping, and of the objects that cert-manager makes. */ -}}
{{- define "drydock.metrics" -}}
{{- include "drydock.fullname" . | trunc 55 | trimSuffix "-" }}-metrics
{{- end -}}

{{- /* The name in that certificate. */ -}}
{{- define "drydock.metrics.serverName" -}}
{{- default (printf "%s.%s.svc" (include "drydock.fullname" .) (include "drydock.namespace" .)) .Values.metrics.authentication.serverName -}}
{{- end -}}

{{- /* The URL that Alertmanager posts to. */ -}}
{{- define "drydock.receiver.url" -}}
http{{ if dig "receiver" "tls" "certFile" "" .Values.config }}s{{ end }}://{{ include "drydock.fullname" . }}.{{ include "drydock.namespace" . }}:9095/v1/alerts
{{- end -}}
