{{/* The name of the chart, in labels. */}}
{{- define "runtime-enforcer.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* What the names of all objects begin with. 40 characters leave room for the longest ending within 63. */}}
{{- define "runtime-enforcer.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}
{{- end }}

{{/* Labels by which pods of a component are found: they never change. Takes a list of the context and the component. */}}
{{- define "runtime-enforcer.selector" -}}
{{- $context := index . 0 -}}
app.kubernetes.io/name: {{ include "runtime-enforcer.name" $context }}
app.kubernetes.io/instance: {{ $context.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Labels of every object. The agent knows the product's own pods by `part-of`. */}}
{{- define "runtime-enforcer.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
app.kubernetes.io/name: {{ include "runtime-enforcer.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: runtime-enforcer
{{- end }}

{{/* The same with the component. Takes a list of the context and the component. */}}
{{- define "runtime-enforcer.componentLabels" -}}
{{ include "runtime-enforcer.labels" (index . 0) }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Labels of a component's pods, with those that the values add. Takes a list of the context, component and values. */}}
{{- define "runtime-enforcer.podLabels" -}}
{{- $own := omit (include "runtime-enforcer.componentLabels" . | fromYaml) "helm.sh/chart" -}}
{{- $added := (index . 2).podLabels | default dict -}}
{{- toYaml (merge $own $added) }}
{{- end }}

{{/* DNS names by which the parts know each other, the same in every mode of certificates. */}}
{{- define "runtime-enforcer.agentName" -}}
{{ include "runtime-enforcer.fullname" . }}-agent
{{- end }}
{{- define "runtime-enforcer.controllerName" -}}
{{ include "runtime-enforcer.fullname" . }}-controller
{{- end }}
{{- define "runtime-enforcer.debuggerName" -}}
{{ include "runtime-enforcer.fullname" . }}-debugger
{{- end }}
{{- define "runtime-enforcer.webhookService" -}}
{{ include "runtime-enforcer.fullname" . }}-controller-webhook
{{- end }}
{{- define "runtime-enforcer.collectorService" -}}
{{ include "runtime-enforcer.fullname" . }}-otel-collector
{{- end }}

{{/* The pods of agents, as a selector in a command line. */}}
{{- define "runtime-enforcer.agentSelectorText" -}}
{{- $parts := list -}}
{{- range $key, $value := include "runtime-enforcer.selector" (list . "agent") | fromYaml }}
{{- $parts = append $parts (printf "%s=%s" $key $value) }}
{{- end }}
{{- join "," $parts }}
{{- end }}
