{{/* Names of the secrets that hold the certificates, in the modes in which there are any. Takes a list of the context
and one of agent, controller, webhook, debugger, collector. */}}
{{- define "runtime-enforcer.certificateSecret" -}}
{{- $context := index . 0 -}}
{{- $part := index . 1 -}}
{{- $certificates := $context.Values.certificates -}}
{{- if eq $certificates.mode "secret" -}}
{{- required (printf "certificates.secret.%s: name the secret with tls.crt, tls.key and ca.crt, or choose another certificates.mode" $part) (get $certificates.secret $part) }}
{{- else -}}
{{- printf "%s-%s-tls" (include "runtime-enforcer.fullname" $context) (eq $part "collector" | ternary "otel-collector" $part) }}
{{- end }}
{{- end }}

{{/* Where a component's certificate comes from, as the source of a volume. Takes a dict: context, part, dnsNames;
group, of the files, where the program is not root; needed: true where the pod must not start without. */}}
{{- define "runtime-enforcer.certificateVolume" -}}
{{- $fullname := include "runtime-enforcer.fullname" .context -}}
{{- if eq .context.Values.certificates.mode "cert-manager-csi" -}}
csi:
  driver: csi.cert-manager.io
  readOnly: true
  volumeAttributes:
    csi.cert-manager.io/issuer-name: {{ $fullname }}-ca
    csi.cert-manager.io/issuer-kind: Issuer
    csi.cert-manager.io/dns-names: {{ join "," .dnsNames }}
    csi.cert-manager.io/key-usages: digital signature,key encipherment,client auth,server auth
    {{- with .group }}
    csi.cert-manager.io/fs-group: {{ . | quote }}
    {{- end }}
{{- else -}}
secret:
  secretName: {{ include "runtime-enforcer.certificateSecret" (list .context .part) }}
  defaultMode: 0440
  {{- if .needed }}
  items:
    - key: tls.crt
      path: tls.crt
    - key: tls.key
      path: tls.key
    - key: ca.crt
      path: ca.crt
  {{- else }}
  optional: true
  {{- end }}
{{- end }}
{{- end }}

{{/* DNS names of the collector's service, as a YAML list. */}}
{{- define "runtime-enforcer.collectorDnsNames" -}}
{{- $service := include "runtime-enforcer.collectorService" . -}}
- {{ $service }}
- {{ $service }}.{{ .Release.Namespace }}
- {{ $service }}.{{ .Release.Namespace }}.svc
- {{ $service }}.{{ .Release.Namespace }}.svc.{{ .Values.kubernetesClusterDomain }}
{{- end }}

{{/* The secret and key with the authority of the webhooks' certificate, for who has to check the controller's metrics. */}}
{{- define "runtime-enforcer.authoritySecret" -}}
{{- if eq .Values.certificates.mode "cert-manager-csi" -}}
{{ include "runtime-enforcer.fullname" . }}-ca
{{- else -}}
{{ include "runtime-enforcer.certificateSecret" (list . "webhook") }}
{{- end }}
{{- end }}

{{/* DNS names under which the API server asks the webhooks, as a YAML list. */}}
{{- define "runtime-enforcer.webhookDnsNames" -}}
- {{ include "runtime-enforcer.webhookService" . }}.{{ .Release.Namespace }}.svc
- {{ include "runtime-enforcer.webhookService" . }}.{{ .Release.Namespace }}.svc.{{ .Values.kubernetesClusterDomain }}
{{- end }}
