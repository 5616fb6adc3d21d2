{{- define "groupkeeper.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "groupkeeper.selector" -}}
app.kubernetes.io/name: groupkeeper
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "groupkeeper.labels" -}}
{{ include "groupkeeper.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "groupkeeper.image" -}}
{{- $tag := .Values.image.tag | default (ternary .Chart.AppVersion "" (contains "/" .Values.image.repository)) -}}
{{- .Values.image.repository }}{{ with $tag }}:{{ . }}{{ end -}}
{{- end -}}

{{- define "groupkeeper.claim" -}}
{{- .Values.persistence.existingClaim | default (printf "%s-data" (include "groupkeeper.name" .)) -}}
{{- end -}}

{{/* The name of a worker's port: the first has the plain name. */}}
{{- define "groupkeeper.port" -}}
{{- .name }}{{ if .worker }}-{{ add1 .worker }}{{ end -}}
{{- end -}}
