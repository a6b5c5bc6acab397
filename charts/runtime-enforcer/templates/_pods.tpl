{{/* Of the image's values, and of the chart's version where they name none. Takes a list of the context and the image. */}}
{{- define "runtime-enforcer.image" -}}
{{- $image := index . 1 -}}
{{ $image.repository }}:{{ $image.tag | default (index . 0).Chart.AppVersion }}
{{- end }}

{{/* What is asked of the scheduler and of the registry is said alike for every component. Takes a list of the context
and the component's values. */}}
{{- define "runtime-enforcer.placement" -}}
{{- $context := index . 0 -}}
{{- $values := index . 1 -}}
{{- with $context.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ kindIs "map" . | ternary (get (kindIs "map" . | ternary . dict) "name") . }}
  {{- end }}
{{- end }}
{{- if $context.Values.priorityClass.enabled }}
priorityClassName: {{ $context.Values.priorityClass.name }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* A program's arguments: the chart's own, without those that the values give too, and then the values'. Nothing
empty: the programs refuse it. Takes a list of the chart's and the values'. */}}
{{- define "runtime-enforcer.args" -}}
{{- $given := compact (index . 1 | default list) -}}
{{- $names := list -}}
{{- range $given }}{{ $names = append $names (splitList "=" . | first) }}{{ end -}}
{{- $args := list -}}
{{- range index . 0 }}
{{- if not (has (splitList "=" . | first) $names) }}{{ $args = append $args . }}{{ end }}
{{- end }}
{{- toYaml (concat $args $given) }}
{{- end }}

{{/* Who a program's pod is. */}}
{{- define "runtime-enforcer.podEnvironment" -}}
- name: NODE_NAME
  valueFrom:
    fieldRef:
      fieldPath: spec.nodeName
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: POD_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: POD_UID
  valueFrom:
    fieldRef:
      fieldPath: metadata.uid
{{- end }}
