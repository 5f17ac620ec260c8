#include "diagnose/manifest/deployment_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/manifest/engine_settings.h"

namespace fathom {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

ReadDeployment ReadText(std::string name, std::string text) {
  const SourceFile file{std::move(name), std::move(text)};
  return ReadDeploymentFiles({&file, 1});
}

std::vector<Program> ProgramsOf(std::string name, std::string text) {
  ReadDeployment read = ReadText(std::move(name), std::move(text));
  EXPECT_THAT(read.unread, IsEmpty()) << read.unread[0].problem;
  return std::move(read.deployment.programs);
}

std::string ValueOf(const Written* written) { return written == nullptr ? "?" : written->value; }

constexpr std::string_view kDeployment = R"(apiVersion: apps/v1
kind: Deployment
metadata:
  name: vllm
  namespace: ml
spec:
  replicas: 3
  template:
    metadata:
      labels:
        app: vllm
    spec:
      containers:
        - name: engine
          image: vllm/vllm-openai:v0.11.0
          args:
            - --model
            - meta-llama/Llama-3.1-8B
            - --block-size=32
            - --no-enable-prefix-caching
            - --kv-events-config
            - '{"enable_kv_cache_events": true, "endpoint": "tcp://*:5600"}'
          ports:
            - containerPort: 8000
              name: http
          env:
            - name: HF_HOME
              value: /models
            - name: TOKEN
              valueFrom:
                secretKeyRef: {name: a, key: b}
)";

TEST(DeploymentReader, ReadsADeployment) {
  const auto programs = ProgramsOf("a.yaml", std::string(kDeployment));
  ASSERT_THAT(programs, SizeIs(1));
  const Program& program = programs[0];
  EXPECT_EQ(program.role, ProgramRole::kEngine);
  EXPECT_EQ(program.engine, EngineKind::kVllm);
  EXPECT_FALSE(program.dynamo);
  EXPECT_EQ(program.name, "Deployment ml/vllm, container engine");
  EXPECT_EQ(program.graph, "a.yaml");
  EXPECT_EQ(program.version, "0.11.0");
  EXPECT_EQ(program.replicas, 3u);
  EXPECT_EQ(program.network_namespace, "ml");
  EXPECT_EQ(program.labels.at("app"), "vllm");
  EXPECT_EQ(program.place, (FilePlace{"a.yaml", 14}));
  ASSERT_THAT(program.ports, SizeIs(1));
  EXPECT_EQ(program.ports[0].port, 8000);
  const Written* size = program.Flag("--block_size");
  ASSERT_NE(size, nullptr);
  EXPECT_EQ(size->value, "32");
  EXPECT_EQ(size->place.line, 19u);
  EXPECT_EQ(kDeployment.substr(size->span->offset, size->span->length), "32");
  EXPECT_EQ(ValueOf(program.Variable("HF_HOME")), "/models");
  ASSERT_NE(program.Variable("TOKEN"), nullptr);
  EXPECT_EQ(program.Variable("TOKEN")->span, std::nullopt);
}

TEST(DeploymentReader, ReadsTheFrontendFragmentOfDocumentation) {
  const auto programs = ProgramsOf("agg_router.yaml", R"(Frontend:
  componentType: frontend
  replicas: 1
  extraPodSpec:
    mainContainer:
      image: my-registry/tensorrtllm-runtime:my-tag
  envs:
    - name: DYN_ROUTER_MODE
      value: kv
)");
  ASSERT_THAT(programs, SizeIs(1));
  EXPECT_EQ(programs[0].role, ProgramRole::kDynamoFrontend);
  EXPECT_EQ(programs[0].engine, EngineKind::kTrtllm);
  EXPECT_TRUE(programs[0].dynamo);
  EXPECT_EQ(programs[0].name, "Frontend");
  EXPECT_EQ(programs[0].version, "");
  EXPECT_EQ(ValueOf(programs[0].Variable("DYN_ROUTER_MODE")), "kv");
}

constexpr std::string_view kGraph = R"(apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: agg
spec:
  backendFramework: trtllm
  envs:
    - name: SHARED
      value: yes-it-is
  services:
    Frontend:
      componentType: frontend
      replicas: 1
      extraPodSpec:
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:0.9.0
    TRTLLMWorker:
      componentType: worker
      replicas: 2
      extraPodSpec:
        volumes:
          - name: config
            configMap:
              name: engine
        mainContainer:
          image: nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:0.9.0
          volumeMounts:
            - name: config
              mountPath: /config
          command: ["python3", "-m", "dynamo.trtllm"]
          args:
            - --model-path
            - Qwen/Qwen3-0.6B
            - --extra-engine-args
            - /config/agg.yaml
            - --publish-events-and-metrics
    Planner:
      componentType: planner
)";
constexpr std::string_view kEngineMap = R"(apiVersion: v1
kind: ConfigMap
metadata:
  name: engine
data:
  agg.yaml: |
    # the engine's own
    kv_cache_config:
      free_gpu_memory_fraction: 0.85
      tokens_per_block: 64
    max_batch_size: 16
)";

TEST(DeploymentReader, ReadsAGraphWithTheEngineFileOfAConfigMapInAnotherFile) {
  const SourceFile files[] = {{"graph.yaml", std::string(kGraph)},
                              {"map.yaml", std::string(kEngineMap)}};
  const ReadDeployment read = ReadDeploymentFiles(files);
  EXPECT_THAT(read.unread, IsEmpty());
  ASSERT_THAT(read.deployment.programs, SizeIs(2));
  const Program& frontend = read.deployment.programs[0];
  EXPECT_EQ(frontend.role, ProgramRole::kDynamoFrontend);
  EXPECT_EQ(frontend.graph, "DynamoGraphDeployment agg");
  EXPECT_EQ(ValueOf(frontend.Variable("SHARED")), "yes-it-is");
  const Program& worker = read.deployment.programs[1];
  EXPECT_EQ(worker.role, ProgramRole::kEngine);
  EXPECT_EQ(worker.engine, EngineKind::kTrtllm);
  EXPECT_EQ(worker.replicas, 2u);
  EXPECT_FALSE(worker.unseen_file);
  const Written* size = worker.Key("kv_cache_config.tokens_per_block");
  ASSERT_NE(size, nullptr);
  EXPECT_EQ(size->value, "64");
  EXPECT_EQ(size->place, (FilePlace{"map.yaml", 10}));
  EXPECT_EQ(kEngineMap.substr(size->span->offset, size->span->length), "64");
  const EngineSettings settings = EngineSettingsOf(worker);
  EXPECT_EQ(settings.block_size.value, 64u);
  EXPECT_EQ(settings.memory_fraction.value, 0.85);
  EXPECT_EQ(settings.model, "Qwen/Qwen3-0.6B");
  EXPECT_EQ(settings.publisher.enabled.value, true);
}

TEST(DeploymentReader, KnowsThatItHasNotSeenAnEngineFile) {
  const auto programs = ProgramsOf("graph.yaml", std::string(kGraph));
  ASSERT_THAT(programs, SizeIs(2));
  EXPECT_TRUE(programs[1].unseen_file);
  EXPECT_EQ(EngineSettingsOf(programs[1]).block_size.value, std::nullopt);
}

TEST(DeploymentReader, ReadsTheComponentsOfANewerGraph) {
  const auto programs = ProgramsOf("graph.yaml", R"(apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: x, namespace: y}
spec:
  components:
  - name: Frontend
    type: frontend
    podTemplate:
      spec:
        containers:
        - name: main
          image: r/sglang-runtime:1.5.0
          env:
          - name: DYN_ROUTER_MODE
            value: kv
  - name: SGLangWorker
    type: worker
    replicas: 4
    podTemplate:
      spec:
        containers:
        - name: sidecar
          image: other
        - name: main
          image: r/sglang-runtime:1.5.0
          command: [python3, -m, dynamo.sglang]
          args: [--model-path, Qwen/Qwen3.5-4B, --page-size, "64"]
)");
  ASSERT_THAT(programs, SizeIs(2));
  EXPECT_EQ(programs[0].role, ProgramRole::kDynamoFrontend);
  EXPECT_EQ(ValueOf(programs[0].Variable("DYN_ROUTER_MODE")), "kv");
  EXPECT_EQ(programs[1].engine, EngineKind::kSglang);
  EXPECT_EQ(programs[1].replicas, 4u);
  EXPECT_EQ(EngineSettingsOf(programs[1]).block_size.value, 64u);
}

TEST(DeploymentReader, ReadsWhatKubectlGets) {
  const auto yaml = ProgramsOf("all.yaml", R"(apiVersion: v1
items:
- apiVersion: v1
  kind: Pod
  metadata: {name: p, namespace: n}
  spec:
    hostNetwork: true
    containers:
    - name: c
      image: lmsysorg/sglang:v0.5.9
      command: [python3, -m, sglang.launch_server]
      args: ["--model-path", "m"]
kind: List
)");
  ASSERT_THAT(yaml, SizeIs(1));
  EXPECT_EQ(yaml[0].name, "Pod n/p, container c");
  EXPECT_TRUE(yaml[0].host_network);

  const auto json = ProgramsOf("all.json", R"({
	"apiVersion": "v1", "kind": "List", "items": [
	{"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"},
	 "spec": {"template": {"spec": {"containers": [{"name": "c", "image": "vllm/vllm-openai",
	  "args": ["--block-size", "16"]}]}}}}]})");
  ASSERT_THAT(json, SizeIs(1));
  EXPECT_EQ(ValueOf(json[0].Flag("--block-size")), "16");
}

TEST(DeploymentReader, ReadsServices) {
  const ReadDeployment read = ReadText("s.yaml", R"(apiVersion: v1
kind: Service
metadata: {name: a, namespace: n}
spec:
  clusterIP: None
  selector: {app: vllm}
---
apiVersion: v1
kind: Service
metadata: {name: b}
spec: {selector: {app: other}}
)");
  ASSERT_THAT(read.deployment.services, SizeIs(2));
  EXPECT_TRUE(read.deployment.services[0].headless);
  EXPECT_EQ(read.deployment.services[0].network_namespace, "n");
  EXPECT_EQ(read.deployment.services[0].selector.at("app"), "vllm");
  EXPECT_FALSE(read.deployment.services[1].headless);
  EXPECT_EQ(read.deployment.services[1].place.line, 10u);
}

TEST(DeploymentReader, ReadsTheScriptOfAShellInAContainer) {
  const std::string text = R"(apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: c
    image: vllm/vllm-openai:v0.9.0
    env:
    - {name: SIZE, value: "64"}
    command: ["/bin/bash", "-lc"]
    args:
    - |
      set -e
      # how it is started
      export EXTRA=1
      exec vllm serve some/model \
        --block-size $SIZE \
        --kv-events-config '{"enable_kv_cache_events": true}' && true
)";
  const auto programs = ProgramsOf("p.yaml", text);
  ASSERT_THAT(programs, SizeIs(1));
  EXPECT_EQ(ValueOf(programs[0].Flag("--block-size")), "64");
  EXPECT_EQ(programs[0].Flag("--block-size")->span, std::nullopt);
  EXPECT_EQ(ValueOf(programs[0].Flag("--model")), "some/model");
  EXPECT_EQ(ValueOf(programs[0].Variable("EXTRA")), "1");
  const Written* config = programs[0].Flag("--kv-events-config");
  ASSERT_NE(config, nullptr);
  EXPECT_EQ(config->place.line, 18u);
  EXPECT_EQ(text.substr(config->span->offset, config->span->length),
            R"('{"enable_kv_cache_events": true}')");
}

TEST(DeploymentReader, BelievesACommandMoreThanAnImage) {
  const auto programs = ProgramsOf("p.yaml", R"(apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - {name: a, image: vllm/vllm-openai, command: [sleep, infinity]}
  - {name: b, image: vllm/vllm-openai, command: [python3, -m, sglang.launch_server]}
  - {name: c, image: own/image, command: [./run.sh], args: [--mem-fraction-static, "0.8"]}
  - {name: d, image: x/vllm-router}
  - {name: e, image: busybox}
)");
  ASSERT_THAT(programs, SizeIs(2));
  EXPECT_EQ(programs[0].engine, EngineKind::kSglang);
  EXPECT_EQ(programs[1].engine, EngineKind::kSglang);
  EXPECT_THAT(programs[1].name, HasSubstr("container c"));
}

TEST(DeploymentReader, ReadsAComposeFile) {
  const auto programs = ProgramsOf("docker-compose.yml", R"(services:
  engine:
    image: vllm/vllm-openai:${VLLM_VERSION:-v0.12.0}
    command: --model m --block-size 32
    environment:
      - A=b
    ports: ["8000:8001/tcp"]
  other:
    image: lmsysorg/sglang
    command: ["python3", "-m", "sglang.launch_server", "--page-size", "16"]
    environment:
      C: d
  db:
    image: postgres
)");
  ASSERT_THAT(programs, SizeIs(2));
  EXPECT_EQ(programs[0].name, "service engine");
  EXPECT_EQ(programs[0].version, "0.12.0");
  EXPECT_EQ(ValueOf(programs[0].Flag("--block-size")), "32");
  EXPECT_EQ(ValueOf(programs[0].Variable("A")), "b");
  EXPECT_EQ(programs[0].ports[0].port, 8001);
  EXPECT_EQ(ValueOf(programs[1].Flag("--page-size")), "16");
  EXPECT_EQ(ValueOf(programs[1].Variable("C")), "d");
}

TEST(DeploymentReader, ReadsTheValuesOfAChart) {
  const auto programs = ProgramsOf("values.yaml", R"(servingEngineSpec:
  modelSpec:
  - name: llama
    repository: vllm/vllm-openai
    tag: v0.10.0
    modelURL: meta/llama
    replicaCount: 2
    vllmConfig:
      enablePrefixCaching: false
      maxModelLen: 16384
      extraArgs: ["--block-size", "64"]
    env:
    - name: X
      value: "1"
routerSpec:
  repository: lmcache/lmstack-router
  extraArgs: ["--x"]
)");
  ASSERT_THAT(programs, SizeIs(1));
  EXPECT_EQ(programs[0].name, "servingEngineSpec.modelSpec[0]");
  EXPECT_EQ(programs[0].replicas, 2u);
  const EngineSettings settings = EngineSettingsOf(programs[0]);
  EXPECT_EQ(settings.prefix_caching.value, false);
  EXPECT_EQ(settings.context_length.value, 16384u);
  EXPECT_EQ(settings.block_size.value, 64u);
  EXPECT_EQ(settings.model, "meta/llama");
}

TEST(DeploymentReader, ReadsAScriptWithTheFileThatItWrites) {
  const auto programs = ProgramsOf("run.sh", R"(#!/bin/bash
SIZE=16
cat > /tmp/config.yaml <<EOF
kv_cache_config:
  event_buffer_max_size: 1024
EOF
trtllm-serve some/model --extra_llm_api_options /tmp/config.yaml --tp_size 4 &
DYN_ROUTER_MODE=kv python3 -m dynamo.frontend --kv-cache-block-size "${SIZE}" --http-port 8000
docker run --gpus all -e HF=1 -p 8000:8000 vllm/vllm-openai:v0.9.1 --model m --block-size 8
)");
  ASSERT_THAT(programs, SizeIs(3));
  EXPECT_EQ(programs[0].engine, EngineKind::kTrtllm);
  EXPECT_EQ(EngineSettingsOf(programs[0]).event_buffer.value, 1024u);
  EXPECT_EQ(EngineSettingsOf(programs[0]).tensor_parallel, 4u);
  EXPECT_EQ(programs[0].Key("kv_cache_config.event_buffer_max_size")->place.line, 5u);
  EXPECT_EQ(programs[1].role, ProgramRole::kDynamoFrontend);
  EXPECT_EQ(RouterSettingsOf(programs[1]).block_size.value, 16u);
  EXPECT_EQ(RouterSettingsOf(programs[1]).mode.value, "kv");
  EXPECT_EQ(programs[1].name, "run.sh:8");
  EXPECT_EQ(programs[2].version, "0.9.1");
  EXPECT_EQ(ValueOf(programs[2].Variable("HF")), "1");
  EXPECT_EQ(ValueOf(programs[2].Flag("--block-size")), "8");
}

TEST(DeploymentReader, ReadsTheFencedBlocksOfMarkdown) {
  const std::string text =
      "# Title\n\nDon't.\n\n```yaml\nFrontend:\n  componentType: frontend\n  envs:\n"
      "    - name: DYN_ROUTER_MODE\n      value: kv\n```\n\n```\nvllm serve m --block-size "
      "32\n```\n"
      "```yaml\n: : broken [\n```\n```python\nvllm serve no\n```\n";
  const auto programs = ProgramsOf("docs/router.md", text);
  ASSERT_THAT(programs, SizeIs(2));
  EXPECT_EQ(programs[0].role, ProgramRole::kDynamoFrontend);
  EXPECT_EQ(programs[0].place.line, 6u);
  EXPECT_NE(programs[0].graph, programs[1].graph);
  const Written* size = programs[1].Flag("--block-size");
  EXPECT_EQ(size->place.line, 14u);
  EXPECT_EQ(text.substr(size->span->offset, size->span->length), "32");
}

TEST(DeploymentReader, ReadsEngineFilesByThemselves) {
  const auto trtllm = ProgramsOf("agg.yaml", "kv_cache_config:\n  enable_block_reuse: false\n");
  ASSERT_THAT(trtllm, SizeIs(1));
  EXPECT_EQ(trtllm[0].engine, EngineKind::kTrtllm);
  EXPECT_EQ(EngineSettingsOf(trtllm[0]).prefix_caching.value, false);
  const auto sglang = ProgramsOf("sglang.yaml", "model-path: x\npage-size: 64\n");
  ASSERT_THAT(sglang, SizeIs(1));
  EXPECT_EQ(EngineSettingsOf(sglang[0]).block_size.value, 64u);
  const auto fathom = ProgramsOf("fathom.yaml", "workers:\n  - http://a\n  - url: http://b\n");
  ASSERT_THAT(fathom, SizeIs(1));
  EXPECT_EQ(fathom[0].role, ProgramRole::kFathom);
  EXPECT_THAT(RouterSettingsOf(fathom[0]).workers, SizeIs(2));
}

TEST(DeploymentReader, WantsMoreThanOneKeyThatAnyProgramMayHave) {
  for (const std::string_view text :
       {"page_size: 1\ntheme: dark\n", "workers: 4\nblock-size: 4096\nmodel_path: ./x.onnx\n",
        "block_size: 4096\ncompression: zstd\n", "workers: [a, b]\n", "router-mode: history\n"}) {
    EXPECT_THAT(ProgramsOf("x.yaml", std::string(text)), IsEmpty()) << text;
  }
  for (const std::string_view text :
       {"page-size = 1\nworkers = 4\n", "[tool.thing]\npage-size = 1\n",
        "[frontend]\nport = 8080\nbundler = \"vite\"\n"}) {
    EXPECT_THAT(ProgramsOf("x.toml", std::string(text)), IsEmpty()) << text;
  }
}

TEST(DeploymentReader, KnowsAnEngineFileByTwoKeysOrByOneThatNobodyElseHas) {
  const auto engine = [](std::string_view text) {
    const auto programs = ProgramsOf("x.yaml", std::string(text));
    return programs.empty() ? EngineKind::kUnknown : programs[0].engine;
  };
  EXPECT_EQ(engine("block-size: 32\nmax-model-len: 4096\n"), EngineKind::kVllm);
  EXPECT_EQ(engine("kv_events_config: {publisher: zmq}\n"), EngineKind::kVllm);
  EXPECT_EQ(engine("kv-events-config: {publisher: zmq}\npage-size: 16\n"), EngineKind::kSglang);
  EXPECT_EQ(engine("enable_attention_dp: true\n"), EngineKind::kTrtllm);
}

TEST(DeploymentReader, ReadsAFileOfOneKeyWhereAProgramNamesIt) {
  const SourceFile files[] = {{"c.yaml", "block-size: 32\n"},
                              {"run.sh", "vllm serve m --config c.yaml\n"}};
  const ReadDeployment read = ReadDeploymentFiles(files);
  ASSERT_THAT(read.deployment.programs, SizeIs(1));
  EXPECT_EQ(EngineSettingsOf(read.deployment.programs[0]).block_size.value, 32u);
}

TEST(DeploymentReader, GivesAnEngineFileToTheProgramThatNamesIt) {
  const SourceFile files[] = {{"conf/agg.yaml", "kv_cache_config: {tokens_per_block: 64}\n"},
                              {"run.sh", "trtllm-serve m --config conf/agg.yaml\n"}};
  const ReadDeployment read = ReadDeploymentFiles(files);
  ASSERT_THAT(read.deployment.programs, SizeIs(1));
  EXPECT_EQ(EngineSettingsOf(read.deployment.programs[0]).block_size.value, 64u);
}

TEST(DeploymentReader, ReadsToml) {
  const std::string text =
      "title = \"\xc3\xa9\"\n[frontend]\nrouter-mode = \"kv\" # \xc3\xa9\nkv-cache-block-size = "
      "16\n"
      "[frontend.env]\nDYN_X = \"1\"\n[trtllm.kv_cache_config]\ntokens_per_block = 32\n";
  const auto programs = ProgramsOf("dynamo.toml", text);
  ASSERT_THAT(programs, SizeIs(2));
  EXPECT_EQ(programs[0].role, ProgramRole::kDynamoFrontend);
  EXPECT_EQ(RouterSettingsOf(programs[0]).block_size.value, 16u);
  EXPECT_EQ(ValueOf(programs[0].Variable("DYN_X")), "1");
  const Written* size = programs[1].Key("kv_cache_config.tokens_per_block");
  ASSERT_NE(size, nullptr);
  EXPECT_EQ(size->place.line, 8u);
  EXPECT_EQ(text.substr(size->span->offset, size->span->length), "32");
}

TEST(DeploymentReader, FindsNothingInAFileWithNothingToFind) {
  for (const std::string_view text : {"", "a: b\n", "- 1\n- 2\n", "just a sentence\n", "---\n"}) {
    const ReadDeployment read = ReadText("x.yaml", std::string(text));
    EXPECT_THAT(read.deployment.programs, IsEmpty()) << text;
    EXPECT_THAT(read.unread, IsEmpty()) << text;
  }
}

TEST(DeploymentReader, NamesTheLineOfWhatItCannotRead) {
  const SourceFile files[] = {
      {"bad.yaml", "a: [1, 2\nb: 3\n"},
      {"bad.toml", "a = \n"},
      {"chart.yaml", "a: 1\n{{- if .Values.x }}\nb: {{ .y }}\n{{- end }}\n"},
      {"good.yaml", "kv_cache_config: {}\n"}};
  const ReadDeployment read = ReadDeploymentFiles(files);
  ASSERT_THAT(read.unread, SizeIs(3));
  EXPECT_THAT(read.unread[0].problem, StartsWith("bad.yaml:"));
  EXPECT_THAT(read.unread[0].problem, HasSubstr("bad YAML"));
  EXPECT_THAT(read.unread[1].problem, StartsWith("bad.toml:1:"));
  EXPECT_EQ(read.unread[2].problem,
            "chart.yaml:2: a Helm template: render it first (helm template ...)");
  EXPECT_THAT(read.deployment.programs, SizeIs(1));
}

TEST(DeploymentReader, RefusesAFileThatIsTooLarge) {
  const ReadDeployment read = ReadText("big.yaml", std::string(kMaxManifestBytes + 1, '#'));
  ASSERT_THAT(read.unread, SizeIs(1));
  EXPECT_THAT(read.unread[0].problem, HasSubstr("above the limit of 16 MiB"));
}

TEST(DeploymentReader, TakesVariablesOfAConfigMap) {
  const auto programs = ProgramsOf("p.yaml", R"(apiVersion: v1
kind: ConfigMap
metadata: {name: vars}
data:
  DYN_KV_CACHE_BLOCK_SIZE: "32"
  DYN_ROUTER_MODE: kv
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: a
    image: x
    command: [python3, -m, dynamo.frontend]
    envFrom:
    - configMapRef: {name: vars}
    env:
    - {name: DYN_ROUTER_MODE, value: random}
)");
  ASSERT_THAT(programs, SizeIs(1));
  EXPECT_EQ(RouterSettingsOf(programs[0]).block_size.value, 32u);
  EXPECT_EQ(RouterSettingsOf(programs[0]).mode.value, "random");
}

}  // namespace
}  // namespace fathom
