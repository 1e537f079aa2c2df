{{/* The names of the objects: the name of the release, with that of the chart unless it contains it. */}}
{{- define "svc.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "svc.labels" -}}
{{ include "svc.instance" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "svc.instance" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* What selects the nodes, and neither the Job of migrations nor the test. */}}
{{- define "svc.selector" -}}
{{ include "svc.instance" . }}
app.kubernetes.io/component: node
{{- end -}}

{{- define "svc.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}
{{- end -}}

{{- define "svc.secret" -}}
{{- default (include "svc.fullname" .) .Values.secret.existingSecret -}}
{{- end -}}

{{/* A variable of the Secret, for: name, key, root. */}}
{{- define "svc.secretVariable" -}}
- name: {{ .name }}
  valueFrom:
    secretKeyRef: { name: {{ include "svc.secret" .root | quote }}, key: {{ .key | quote }} }
{{- end -}}

{{/* What every pod of the chart has. */}}
{{- define "svc.pod" -}}
automountServiceAccountToken: false
# The variables that Kubernetes makes for a Service called svc would begin with SVC_.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: { type: RuntimeDefault }
{{- with .Values.serviceAccountName }}
serviceAccountName: {{ . | quote }}
{{- end }}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What every container of the chart has. */}}
{{- define "svc.container" -}}
image: {{ include "svc.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: { drop: [ALL] }
{{- end -}}

{{/* The file of settings: TOML, whose texts, numbers and lists are written as in JSON. */}}
{{- define "svc.settings" -}}
{{- $elsewhere := dict
  "config" "the chart has a file of its own"
  "database-url" "put it in the Secret, under secret.databaseUrlKey"
  "demo" "it needs a database of its own"
  "listen" "the chart sets it to port 8080"
  "log-format" "set log.format"
  "ops-listen" "the chart sets it to port 9464"
  "platform-listen" "set platform.enabled"
  "shutdown-grace" "set shutdown.graceSeconds"
  "tls-cert" "nodes speak HTTP, and the Ingress https"
  "tls-key" "nodes speak HTTP, and the Ingress https"
  "egress-proxy" "its URL may hold a password: set SVC_EGRESS_PROXY from a Secret with extraEnv"
  "oidc-client-secret" "set SVC_OIDC_CLIENT_SECRET from a Secret with extraEnv"
-}}
{{- range $name, $value := .Values.settings }}
{{- with get $elsewhere $name }}{{ fail (printf "settings.%s cannot be set: %s" $name .) }}{{ end }}
{{ $name }} = {{ toRawJson $value }}
{{- end }}
{{- end -}}
