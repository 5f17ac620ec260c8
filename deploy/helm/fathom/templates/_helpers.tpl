{{- define "fathom.fullname" -}}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" }}
{{- else if contains .Chart.Name .Release.Name }}
{{- .Release.Name | trunc 50 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "fathom.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* Which pods are routers. */}}
{{- define "fathom.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: router
{{- end }}

{{/* Which pods are engines. */}}
{{- define "fathom.engineSelector" -}}
app.kubernetes.io/name: {{ .Values.engine.kind }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: engine
{{- end }}

{{- define "fathom.doctorSelector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: doctor
{{- end }}

{{- define "fathom.commonLabels" -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* How many routers; refuses settings that would fail silently. */}}
{{- define "fathom.replicas" -}}
{{- $polled := eq .Values.engine.kind "tensorrt-llm" }}
{{- $alone := not .Values.secrets.replicaKey }}
{{- $one := and $alone (or $polled (eq .Values.engine.kind "none")) }}
{{- $replicas := .Values.replicas | default (ternary 1 2 $one) | int }}
{{- if and $polled $alone (or (gt $replicas 1) .Values.autoscaling.enabled) }}
{{- fail "TensorRT-LLM hands out each KV event once, so routers have to share them: set secrets.replicaKey, or replicas to 1 and autoscaling.enabled to false" }}
{{- end }}
{{- if and $polled (not .Values.model.claim) }}
{{- fail "TensorRT-LLM has no page that tokenizes, so the router needs the model's files: set model.claim and model.folder" }}
{{- end }}
{{- if and $polled (gt (.Values.engine.dataParallelSize | int) 1) }}
{{- fail "requests cannot be sent to a rank of TensorRT-LLM: set engine.dataParallelSize to 1, and engine.replicas to more" }}
{{- end }}
{{- if and (eq .Values.engine.kind "none") (not .Values.workers) }}
{{- fail "there is nothing to route to: set engine.kind, or name the workers" }}
{{- end }}
{{- if and (ne .Values.engine.kind "none") (not .Values.model.claim) }}
{{- fail "the engines need the model's files: set model.claim and model.folder" }}
{{- end }}
{{- if not (or .Values.secrets.adminKey .Values.admin.open) }}
{{- fail "any pod could add and remove workers: set secrets.adminKey to the name of a Secret with the key admin-key, or admin.open to true" }}
{{- end }}
{{- $replicas }}
{{- end }}

{{- /* Whether the router needs a token and a Role; "" if not. */}}
{{- define "fathom.asksKubernetes" -}}
{{- if and (eq .Values.discovery "kubernetes") (or (ne .Values.engine.kind "none") (contains "k8s" (toYaml .Values.workers))) }}true{{ end }}
{{- end }}

{{- /* Until every router has heard that the pod ends: in seconds. */}}
{{- define "fathom.enginePreStop" -}}
{{- if eq .Values.discovery "kubernetes" }}15{{ else }}45{{ end }}
{{- end }}

{{- /* The name of the routers' group: this release's own, or that of several releases. Refuses settings that would fail silently. */}}
{{- define "fathom.replicaGroup" -}}
{{- $group := .Values.replicaGroup }}
{{- if and (or $group.name $group.peers) (not .Values.secrets.replicaKey) }}
{{- fail "routers share only with a key: set secrets.replicaKey, to the same key in all releases of the group" }}
{{- end }}
{{- if and $group.peers (not $group.name) }}
{{- fail "releases of one group need one name: set replicaGroup.name" }}
{{- end }}
{{- if and $group.peers $group.nats }}
{{- fail "routers that share through NATS find each other there: remove replicaGroup.peers or replicaGroup.nats" }}
{{- end }}
{{- if and $group.name (not $group.peers) (not $group.nats) }}
{{- fail "the other releases of the group would not be found: set replicaGroup.peers, or replicaGroup.nats" }}
{{- end }}
{{- $group.name | default (printf "%s.%s" .Release.Namespace (include "fathom.fullname" .) | trunc 64) }}
{{- end }}

{{- /* Which pods are routers of the group, in this namespace. */}}
{{- define "fathom.groupSelector" -}}
{{- if .Values.replicaGroup.name -}}
fathom-replica-group: {{ .Values.replicaGroup.name | quote }}
{{- else -}}
{{- include "fathom.selector" . }}
{{- end }}
{{- end }}

{{- define "fathom.scheme" -}}
http{{ if index .Values.config "tls-cert" }}s{{ end }}
{{- end }}

{{- /* Whether the routers connect to each other directly; "" if not. */}}
{{- define "fathom.meets" -}}
{{- if and .Values.secrets.replicaKey (not .Values.replicaGroup.nats) }}true{{ end }}
{{- end }}

{{- define "fathom.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "fathom.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: ["ALL"]
{{- end }}

{{- define "fathom.adminKey" -}}
- name: FATHOM_ADMIN_KEY
  valueFrom:
    secretKeyRef:
      name: {{ .Values.secrets.adminKey }}
      key: admin-key
{{- end }}
