{{- define "lockstep.labels" -}}
app.kubernetes.io/name: lockstep
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/part-of: lockstep
{{- end }}

{{- define "lockstep.selector" -}}
app.kubernetes.io/name: lockstep
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "lockstep.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Where servers of notebooks and browsers reach the gateway. */}}
{{- define "lockstep.gateway" -}}
{{ .Values.gateway.url | default (printf "http://lockstep-gateway.%s.svc:%d" .Release.Namespace (int .Values.gateway.port)) }}
{{- end }}

{{- /* The names of the parts that this release runs. */}}
{{- define "lockstep.components" -}}
scheduler controllers{{ if .Values.console.enabled }} console{{ end }}{{ if .Values.gateway.enabled }} gateway{{ end }}{{ if .Values.admission.enabled }} admission{{ end }}{{ if .Values.simulatedNodes.enabled }} simulate-nodes{{ end }}
{{- end }}

{{- /* What every pod of Lockstep is: nobody in particular, with nothing to write on. */}}
{{- define "lockstep.pod" -}}
serviceAccountName: lockstep-{{ .component }}
automountServiceAccountToken: true
enableServiceLinks: false
{{- with .root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "lockstep.container" -}}
name: {{ .component }}
image: {{ include "lockstep.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  capabilities:
    drop: [ALL]
  readOnlyRootFilesystem: true
resources:
  {{- toYaml .values.resources | nindent 2 }}
{{- end }}

{{- define "lockstep.metadata.pod" -}}
labels:
  {{- include "lockstep.labels" . | nindent 2 }}
  {{- with .root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with .root.Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
