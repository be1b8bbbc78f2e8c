{{- define "toolsrv.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "toolsrv.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := include "toolsrv.name" . -}}
{{- contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "toolsrv.selector" -}}
app.kubernetes.io/name: {{ include "toolsrv.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* What all objects begin with. Helm adds the namespace, and its label managed-by. */}}
{{- define "toolsrv.metadata" -}}
name: {{ include "toolsrv.fullname" . }}
labels:
  {{- include "toolsrv.selector" . | nindent 2 }}
  app.kubernetes.io/version: {{ .Chart.AppVersion | replace "+" "_" | trunc 63 | quote }}
{{- end -}}

{{- define "toolsrv.image" -}}
{{- with .Values.image -}}
{{- .repository -}}
{{- if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default (replace "+" "_" $.Chart.AppVersion) }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "toolsrv.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "toolsrv.fullname" .) -}}
{{- end -}}

{{/* The restricted profile of Kubernetes' pod security standards asks for all but the file system. */}}
{{- define "toolsrv.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
