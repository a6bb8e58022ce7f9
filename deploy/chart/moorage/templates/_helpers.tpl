{{- define "moorage.name" -}}
{{- .Values.name | default .Release.Name -}}
{{- end }}

{{- define "moorage.selector" -}}
app.kubernetes.io/name: moorage
app.kubernetes.io/instance: {{ include "moorage.name" . }}
{{- end }}

{{- define "moorage.podLabels" -}}
{{ include "moorage.selector" . }}
app.kubernetes.io/component: scheduler
{{- end }}

{{- define "moorage.labels" -}}
{{ include "moorage.podLabels" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "moorage.accounts" -}}
- kind: ServiceAccount
  name: {{ include "moorage.name" . }}
  namespace: {{ .Release.Namespace }}
{{- end }}

{{- /* The configuration that is installed: as given, with a lease of its own and without the author's kubeconfig. */}}
{{- define "moorage.config" -}}
{{- $name := include "moorage.name" . }}
{{- $given := .Values.config | default dict }}
{{- if kindIs "string" $given }}
{{- $given = fromYaml $given }}
{{- if hasKey $given "Error" }}
{{- fail (printf "config is not valid YAML: %s" $given.Error) }}
{{- end }}
{{- end }}
{{- $config := deepCopy $given }}
{{- if not $config }}
{{- $config = dict "apiVersion" "kubescheduler.config.k8s.io/v1" "kind" "KubeSchedulerConfiguration" }}
{{- if not .Values.shadow }}
{{- $_ := set $config "profiles" (list (dict "schedulerName" $name)) }}
{{- end }}
{{- end }}
{{- $election := merge (dict) ($config.leaderElection | default dict) (dict "resourceName" $name "resourceNamespace" .Release.Namespace) }}
{{- if .Values.shadow }}
{{- $election = dict "leaderElect" false }}
{{- end }}
{{- $_ := set $config "leaderElection" $election }}
{{- $connection := omit ($config.clientConnection | default dict) "kubeconfig" }}
{{- if $connection }}
{{- $_ := set $config "clientConnection" $connection }}
{{- else }}
{{- $_ := unset $config "clientConnection" }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{- /* "true" with leader election. */}}
{{- define "moorage.elects" -}}
{{- $election := (include "moorage.config" . | fromYaml).leaderElection }}
{{- if ne (toString (get $election "leaderElect")) "false" }}true{{ end }}
{{- end }}

{{- /* The mounted files as YAML: the configuration and the plugins. */}}
{{- define "moorage.files" -}}
{{- $files := dict "config.yaml" (printf "%s\n" (include "moorage.config" .)) }}
{{- toYaml (merge $files .Values.plugins) }}
{{- end }}

{{- /* A digest of the files: another one makes other pods, so that a changed configuration is rolled out. */}}
{{- define "moorage.digest" -}}
{{- $all := "" }}
{{- range $name, $text := include "moorage.files" . | fromYaml }}
{{- $all = printf "%s%s\x00%s\x00" $all $name $text }}
{{- end }}
{{- $all | sha256sum | trunc 16 }}
{{- end }}

{{- /* Fails where an installation could not work. */}}
{{- define "moorage.check" -}}
{{- if and (gt (int .Values.replicas) 1) (not (include "moorage.elects" .)) }}
{{- fail (printf "replicas: %d replicas without leader election would race; set replicas to 1" (int .Values.replicas)) }}
{{- end }}
{{- if not (or .Values.node .Values.shadow) }}
{{- $profiles := (include "moorage.config" . | fromYaml).profiles | default (list dict) }}
{{- range $profiles }}
{{- if eq (.schedulerName | default "default-scheduler") "default-scheduler" }}
{{- fail "config: the profile default-scheduler would have to schedule its own pods; give the profile another name, or set the node of the pods with `node`" }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
