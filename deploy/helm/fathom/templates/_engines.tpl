{{/* The images that the flags below belong to. */}}
{{- define "fathom.engineImage" -}}
{{- $images := dict "vllm" "vllm/vllm-openai:v0.32.0" "sglang" "lmsysorg/sglang:v0.5.23" "tensorrt-llm" "nvcr.io/nvidia/tensorrt-llm/release:1.1.0" }}
{{- .Values.engine.image | default (get $images .Values.engine.kind) }}
{{- end }}

{{- define "fathom.modelName" -}}
{{ base .Values.model.folder }}
{{- end }}

{{/*
Rank r takes the port plus r, for events and for replay: 100 ports apart leaves room for 100 ranks. With * it binds;
with 0.0.0.0 vLLM would connect, and no router gets its events. --shutdown-timeout exists since vLLM 0.18: an older
vLLM refuses to start with it.
*/}}
{{- define "fathom.vllmCommand" -}}
command: ["vllm", "serve"]
args:
  - {{ printf "/models/%s" .Values.model.folder }}
  - --served-model-name={{ include "fathom.modelName" . }}
  - --host=0.0.0.0
  - --port=8000
  - --tensor-parallel-size={{ .Values.engine.tensorParallelSize }}
  - --data-parallel-size={{ .Values.engine.dataParallelSize }}
  - --enable-prefix-caching
  - --kv-events-config={"enable_kv_cache_events":true,"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5657"}
  - --enable-prompt-tokens-details
  - --shutdown-timeout={{ .Values.engine.drainSeconds }}
{{- end }}

{{/*
Several ranks without --enable-dp-attention need an SGLang that has its pull request 29211 (June 2026). Older ones
bind all ranks to one port and exit: zmq.error.ZMQError: Address already in use.
*/}}
{{- define "fathom.sglangCommand" -}}
command: ["python3", "-m", "sglang.launch_server"]
args:
  - {{ printf "--model-path=/models/%s" .Values.model.folder }}
  - --served-model-name={{ include "fathom.modelName" . }}
  - --host=0.0.0.0
  - --port=8000
  - --tp-size={{ .Values.engine.tensorParallelSize }}
  - --dp-size={{ .Values.engine.dataParallelSize }}
  - --kv-events-config={"publisher":"zmq","endpoint":"tcp://*:5557","replay_endpoint":"tcp://*:5657"}
  # SGLang's own page size: with its default of 1 there would be a KV event for every token. Fathom asks for it. If
  # a router has a block-size setting, it must match the backend (defaults: vLLM 16, TensorRT-LLM 32, SGLang 1).
  - --page-size=16
  - --enable-cache-report
  - --enable-metrics
{{- end }}

{{/* Written for release 1.1.0, from its documentation and source; not run. */}}
{{- define "fathom.tensorrt-llmCommand" -}}
command: ["trtllm-serve"]
args:
  - {{ printf "/models/%s" .Values.model.folder }}
  - --host=0.0.0.0
  - --port=8000
  - --tp_size={{ .Values.engine.tensorParallelSize }}
  - --extra_llm_api_options=/etc/trtllm/options.yaml
{{- end }}

{{- define "fathom.enginePorts" -}}
- port: 8000
{{- if ne .Values.engine.kind "tensorrt-llm" }}
# KV events and their replay: rank r is at the first port plus r.
- port: 5557
  endPort: 5656
- port: 5657
  endPort: 5756
{{- end }}
{{- end }}
