{{- /*
dict "root" ROOT "name" NAME "key" KEY, and "agent" as in drydock.metadata: a Secret whose value Drydock generates. The chart makes the
Secret without data, so that every rendering is the same, and Drydock needs no right to create Secrets. An older chart generated the
value itself. Helm would remove this value together with the data, so `helm upgrade` writes it here again. The annotation marks the
value as Drydock's.
*/ -}}
{{- define "drydock.generated" -}}
{{- $old := lookup "v1" "Secret" (include "drydock.namespace" .root) .name -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ .name }}
  namespace: {{ include "drydock.namespace" .root }}
  {{- include "drydock.metadata" (dict "root" .root "agent" .agent) | nindent 2 }}
type: Opaque
{{- $value := dig "data" .key "" $old }}
{{- if and $value (not (dig "metadata" "annotations" "drydock.dev/generated" "" $old)) }}
data:
  {{ .key | quote }}: {{ $value }}
{{- end }}
{{- end -}}

{{- /* The Secrets whose values Drydock generates, as a list: the receiver's token, and the agents' key. */ -}}
{{- define "drydock.generated.names" -}}
{{- $names := list -}}
{{- $token := include "drydock.token.secret" . -}}
{{- if and $token (not .Values.secrets.receiverToken.name) -}}{{- $names = append $names $token -}}{{- end -}}
{{- if and .Values.agent.enabled (not .Values.secrets.agentKey.name) -}}{{- $names = append $names (include "drydock.agent.secret" .) -}}{{- end -}}
{{- toJson $names -}}
{{- end -}}
