{{/* The authority that the API server trusts at the webhooks. In the other modes cert-manager or the controller writes
it there. */}}
{{- define "runtime-enforcer.webhookAuthority" -}}
{{- if eq .Values.certificates.mode "secret" -}}
caBundle: {{ required "certificates.secret.webhookAuthority: give the authority of the webhooks' certificate as PEM, or choose another certificates.mode" .Values.certificates.secret.webhookAuthority | b64enc }}
{{- end }}
{{- end }}

{{/* The version in which the cluster serves MutatingAdmissionPolicies; empty where it serves none. */}}
{{- define "runtime-enforcer.mutatingPolicyVersion" -}}
{{- $group := "admissionregistration.k8s.io" -}}
{{- $version := printf "%s.%s" .Capabilities.KubeVersion.Major (trimSuffix "+" .Capabilities.KubeVersion.Minor) -}}
{{- if or (.Capabilities.APIVersions.Has (printf "%s/v1/MutatingAdmissionPolicy" $group)) (semverCompare ">=1.36.0" (printf "%s.0" $version)) -}}
{{ $group }}/v1
{{- else if .Capabilities.APIVersions.Has (printf "%s/v1beta1/MutatingAdmissionPolicy" $group) -}}
{{ $group }}/v1beta1
{{- end }}
{{- end }}

{{/* Takes a list of the context and the value that asked for a MutatingAdmissionPolicy. */}}
{{- define "runtime-enforcer.requiredMutatingPolicyVersion" -}}
{{- $context := index . 0 -}}
{{- $version := include "runtime-enforcer.mutatingPolicyVersion" $context -}}
{{- required (printf "%s: Kubernetes %s does not serve MutatingAdmissionPolicies; update to 1.36, switch them on in 1.34 or 1.35 (feature gate MutatingAdmissionPolicy and admissionregistration.k8s.io/v1beta1), or leave the value out" (index . 1) $context.Capabilities.KubeVersion.Version) $version }}
{{- end }}
