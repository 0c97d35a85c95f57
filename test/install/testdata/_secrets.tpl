{{- /* What an older chart had: it generated the values itself, and kept them by a lookup. */ -}}
{{- define "drydock.generated" -}}
{{- $old := lookup "v1" "Secret" .root.Release.Namespace .name -}}
apiVersion: v1
kind: Secret
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  {{- include "drydock.metadata" (dict "root" .root "agent" .agent) | nindent 2 }}
type: Opaque
data:
  {{ .key | quote }}: {{ dig "data" .key (randAlphaNum 43 | b64enc) $old }}
{{- end -}}
{{- define "drydock.generated.names" -}}
{{- list "unused" | toJson -}}
{{- end -}}
