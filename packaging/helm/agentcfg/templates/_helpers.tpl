{{- define "agentcfg.name" -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "agentcfg.selector" -}}
app.kubernetes.io/name: agentcfg
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "agentcfg.scheme" -}}
{{ ternary "HTTPS" "HTTP" (ne .Values.tls "") }}
{{- end -}}
