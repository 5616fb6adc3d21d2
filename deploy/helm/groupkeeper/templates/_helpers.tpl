{{- define "groupkeeper.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 46 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 46 | trimSuffix "-" -}}
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

{{/* An image of {image, version}: without a tag of its own it has the version if its name has a registry. */}}
{{- define "groupkeeper.image" -}}
{{- $tag := .image.tag | default (ternary .version "" (contains "/" .image.repository)) -}}
{{- .image.repository }}{{ with $tag }}:{{ . }}{{ end -}}
{{- end -}}

{{- define "groupkeeper.advertise" -}}
{{- .Values.advertise | default (printf "%s:9092" (include "groupkeeper.name" .)) -}}
{{- end -}}

{{/* The value of a setting as text; Go writes large numbers with an exponent. */}}
{{- define "groupkeeper.settingText" -}}
{{- if kindIs "float64" . }}{{ toJson . }}{{ else }}{{ toString . }}{{ end -}}
{{- end -}}

{{- define "groupkeeper.claim" -}}
{{- .Values.persistence.existingClaim | default (printf "%s-data" (include "groupkeeper.name" .)) -}}
{{- end -}}

{{- define "groupkeeper.auditClaim" -}}
{{- .Values.audit.persistence.existingClaim | default (printf "%s-audit" (include "groupkeeper.name" .)) -}}
{{- end -}}

{{/* The settings of a gateway that decide about its ports, with their defaults. */}}
{{- define "groupkeeper.gateway" -}}
{{- $settings := .Values.settings -}}
enabled: {{ hasKey $settings "upstream.bootstrap.servers" }}
sharesPort: {{ hasKey $settings "gateway.sni.pattern" }}
sharedPort: {{ get $settings "gateway.sni.port" | default 9093 | int }}
portBase: {{ get $settings "gateway.port.base" | default 10000 | int }}
processes: {{ get $settings "gateway.workers" | default 1 | int }}
{{- end -}}

{{/* The ports of all nodes, by what they are for: "kafka" for clients, "metrics" for HTTP. */}}
{{- define "groupkeeper.ports" -}}
{{- $gateway := include "groupkeeper.gateway" . | fromYaml -}}
{{- $workers := int .Values.workers -}}
kafka:
{{- if $gateway.sharesPort }}
  - {name: kafka, port: {{ $gateway.sharedPort }}}
{{- else }}
{{- range $index := until $workers }}
  - {name: kafka{{ if $index }}-{{ add1 $index }}{{ end }}, port: {{ add 9092 $index }}}
{{- end }}
{{- range .Values.gateway.brokers }}
  - {name: broker-{{ int . }}, port: {{ add $gateway.portBase (int .) }}}
{{- end }}
{{- end }}
metrics:
{{- range $index := until (add $workers (ternary $gateway.processes 0 $gateway.enabled) | int) }}
  - {name: metrics{{ if $index }}-{{ add1 $index }}{{ end }}, port: {{ add 9308 $index }}}
{{- end }}
{{- end -}}

{{/* Fails if the values do not go together. */}}
{{- define "groupkeeper.check" -}}
{{- $gateway := include "groupkeeper.gateway" . | fromYaml -}}
{{- if not $gateway.enabled -}}
{{- if .Values.gateway.brokers }}{{ fail "gateway.brokers: only a gateway has ports for brokers; set upstream.bootstrap.servers among the settings" }}{{ end -}}
{{- else -}}
{{- if eq .Values.service.type "NodePort" }}{{ fail "service.type: clients use the ports that a gateway tells them, and NodePort changes them" }}{{ end -}}
{{- if and (not $gateway.sharesPort) (not .Values.gateway.brokers) }}{{ fail "gateway.brokers: list the ids of the cluster's brokers, because each needs a port (or set gateway.sni.pattern)" }}{{ end -}}
{{- if and $gateway.sharesPort .Values.gateway.brokers }}{{ fail "gateway.brokers: with gateway.sni.pattern all brokers share one port; leave it empty" }}{{ end -}}
{{- end -}}
{{- end -}}
