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
scheduler controllers{{ if .Values.agent.enabled }} agent{{ end }}{{ if .Values.data.enabled }} data-cache{{ end }}{{ if .Values.router.enabled }} router{{ end }}{{ if .Values.recorder.enabled }} recorder{{ end }}{{ if .Values.console.enabled }} console{{ end }}{{ if .Values.gateway.enabled }} gateway{{ end }}{{ if .Values.admission.enabled }} admission{{ end }}{{ if .Values.simulatedNodes.enabled }} simulate-nodes{{ end }}
{{- end }}

{{- /* The namespace of a part: agent and data cache change their node. */}}
{{- define "lockstep.home" -}}
{{ ternary .root.Values.nodes.namespace .root.Release.Namespace (has .component (list "agent" "data-cache")) }}
{{- end }}

{{- /* The claim that the usage records lie on; empty where the cluster can make none. */}}
{{- define "lockstep.records" -}}
{{- $volume := .Values.recorder.volume }}
{{- $default := false }}
{{- $classes := (lookup "storage.k8s.io/v1" "StorageClass" "" "").items }}
{{- range $classes }}
{{- if eq (dig "storageclass.kubernetes.io/is-default-class" "" (.metadata.annotations | default dict)) "true" }}
{{- $default = true }}
{{- end }}
{{- end }}
{{- /* Rendered without a cluster, nothing can be looked up: the namespaces tell. */}}
{{- $seen := (lookup "v1" "Namespace" "" "").items }}
{{- if $volume.existingClaim -}}
{{ $volume.existingClaim }}
{{- else if or $volume.storageClass $default (not $seen) -}}
lockstep-records
{{- end }}
{{- end }}

{{- /* Whether what needs the Prometheus operator is made: auto, true or false. */}}
{{- define "lockstep.monitored" -}}
{{- $has := .root.Capabilities.APIVersions.Has (printf "monitoring.coreos.com/v1/%s" .kind) }}
{{- if or (eq (toString .wanted) "true") (and (eq (toString .wanted) "auto") $has) }}yes{{ end }}
{{- end }}

{{- /* What a pod of a node is: it runs as root, and as the system's own. */}}
{{- define "lockstep.nodepod" -}}
serviceAccountName: lockstep-{{ .component }}
automountServiceAccountToken: true
enableServiceLinks: false
priorityClassName: system-node-critical
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
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

{{- define "lockstep.nodecontainer" -}}
name: {{ .component }}
image: {{ include "lockstep.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  privileged: true
  runAsUser: 0
  readOnlyRootFilesystem: true
resources:
  {{- toYaml .values.resources | nindent 2 }}
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
