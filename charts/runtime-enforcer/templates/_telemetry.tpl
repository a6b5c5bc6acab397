{{/* Where a program sends its events, by the variables that it reads; nothing without a collector. Takes a list of the
context and the component. */}}
{{- define "runtime-enforcer.telemetryEnvironment" -}}
{{- $context := index . 0 -}}
{{- $telemetry := $context.Values.telemetry -}}
{{- if eq $telemetry.collectorStrategy "default" -}}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: https://{{ include "runtime-enforcer.collectorService" $context }}.{{ $context.Release.Namespace }}.svc.{{ $context.Values.kubernetesClusterDomain }}:4317
- name: OTEL_EXPORTER_OTLP_PROTOCOL
  value: grpc
- name: OTEL_EXPORTER_OTLP_CERTIFICATE
  value: /etc/runtime-enforcer/certs/ca.crt
{{- /* The agent shows the certificate of this directory of its own accord. */}}
{{- if eq (index . 1) "controller" }}
- name: OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE
  value: /etc/runtime-enforcer/certs/tls.crt
- name: OTEL_EXPORTER_OTLP_CLIENT_KEY
  value: /etc/runtime-enforcer/certs/tls.key
{{- end }}
{{- else if eq $telemetry.collectorStrategy "external" -}}
{{- $external := $telemetry.externalCollector -}}
- name: OTEL_EXPORTER_OTLP_ENDPOINT
  value: {{ required "telemetry.externalCollector.endpoint: name the collector, as host:port for grpc or as a URL for http/protobuf, or choose another telemetry.collectorStrategy" $external.endpoint | quote }}
- name: OTEL_EXPORTER_OTLP_PROTOCOL
  value: {{ $external.protocol }}
{{- if $external.otelCollectorCertificateSecret }}
- name: OTEL_EXPORTER_OTLP_CERTIFICATE
  value: /tmp/otel-collector-certs/ca.crt
{{- end }}
{{- if $external.otelCollectorClientCertificateSecret }}
- name: OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE
  value: /tmp/otel-collector-client-certs/tls.crt
- name: OTEL_EXPORTER_OTLP_CLIENT_KEY
  value: /tmp/otel-collector-client-certs/tls.key
{{- end }}
{{- end }}
{{- end }}

{{/* The secrets of an external collector that a pod mounts, as a YAML map from the volume to where it is and what it
holds: the mounts and the volumes are both made of it. */}}
{{- define "runtime-enforcer.telemetrySecrets" -}}
{{- $secrets := dict -}}
{{- if eq .Values.telemetry.collectorStrategy "external" -}}
{{- with .Values.telemetry.externalCollector.otelCollectorCertificateSecret }}
{{- $_ := set $secrets "otel-collector-certs" (dict "secret" . "path" "/tmp/otel-collector-certs" "keys" (list "ca.crt")) }}
{{- end }}
{{- with .Values.telemetry.externalCollector.otelCollectorClientCertificateSecret }}
{{- $_ := set $secrets "otel-collector-client-certs" (dict "secret" . "path" "/tmp/otel-collector-client-certs" "keys" (list "tls.crt" "tls.key")) }}
{{- end }}
{{- end -}}
{{- toYaml $secrets }}
{{- end }}

{{- define "runtime-enforcer.telemetryMounts" -}}
{{- range $name, $secret := include "runtime-enforcer.telemetrySecrets" . | fromYaml }}
- name: {{ $name }}
  mountPath: {{ $secret.path }}
  readOnly: true
{{- end }}
{{- end }}

{{- define "runtime-enforcer.telemetryVolumes" -}}
{{- range $name, $secret := include "runtime-enforcer.telemetrySecrets" . | fromYaml }}
- name: {{ $name }}
  secret:
    secretName: {{ $secret.secret }}
    defaultMode: 0440
    items:
      {{- range $secret.keys }}
      - key: {{ . }}
        path: {{ . }}
      {{- end }}
{{- end }}
{{- end }}
