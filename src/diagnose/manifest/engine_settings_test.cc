#include "diagnose/manifest/engine_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "diagnose/manifest/deployment_reader.h"
#include "diagnose/manifest/identity.h"

namespace fathom {
namespace {

using testing::SizeIs;

Program ProgramOf(std::string_view command) {
  const SourceFile file{"x.sh", std::string(command)};
  ReadDeployment read = ReadDeploymentFiles({&file, 1});
  EXPECT_THAT(read.deployment.programs, SizeIs(1));
  return read.deployment.programs.empty() ? Program{} : std::move(read.deployment.programs[0]);
}

EngineSettings SettingsOf(std::string_view command) { return EngineSettingsOf(ProgramOf(command)); }

TEST(EngineSettings, HasTheDefaultsOfEachEngine) {
  const EngineSettings vllm = SettingsOf("vllm serve m");
  EXPECT_EQ(vllm.block_size.value, 16u);
  EXPECT_EQ(vllm.block_size.written, std::nullopt);
  EXPECT_EQ(vllm.prefix_caching.value, true);
  EXPECT_EQ(vllm.publisher.enabled.value, false);
  EXPECT_EQ(vllm.port.value, 8000);
  EXPECT_EQ(vllm.model, "m");
  const EngineSettings sglang = SettingsOf("python3 -m sglang.launch_server --model-path m");
  EXPECT_EQ(sglang.block_size.value, 1u);
  EXPECT_EQ(sglang.publisher.enabled.value, false);
  EXPECT_EQ(sglang.port.value, 30000);
  EXPECT_EQ(sglang.memory_fraction.value, std::nullopt);
  EXPECT_EQ(sglang.model, "m");
  const EngineSettings trtllm = SettingsOf("trtllm-serve m");
  EXPECT_EQ(trtllm.block_size.value, 32u);
  EXPECT_EQ(trtllm.event_buffer.value, 0u);
  EXPECT_EQ(trtllm.memory_fraction.value, 0.9);
}

TEST(EngineSettings, HasNoDefaultWhereABackendOrAnUnseenFileDecides) {
  EXPECT_EQ(SettingsOf("vllm serve m --attention-backend FLASHMLA").block_size.value, std::nullopt);
  EXPECT_EQ(SettingsOf("trtllm-serve m --extra_llm_api_options x.yaml").block_size.value,
            std::nullopt);
  EXPECT_EQ(SettingsOf("vllm serve m --config x.yaml").publisher.enabled.value, std::nullopt);
}

TEST(EngineSettings, KeepsTheDefaultWithABackendThatTakesIt) {
  EXPECT_EQ(SettingsOf("vllm serve m --attention-backend FLASH_ATTN").block_size.value, 16u);
  EXPECT_EQ(SettingsOf("VLLM_ATTENTION_BACKEND=FLASHINFER vllm serve m").block_size.value, 16u);
  EXPECT_EQ(SettingsOf("sglang serve m --attention-backend fa3").block_size.value, 1u);
  for (const char* forced : {"cutlass_mla", "trtllm_mha", "fa4", "$BACKEND"}) {
    EXPECT_EQ(
        SettingsOf(fmt::format("sglang serve m --attention-backend {}", forced)).block_size.value,
        std::nullopt)
        << forced;
  }
  EXPECT_EQ(SettingsOf("sglang serve m --decode-attention-backend flashmla").block_size.value,
            std::nullopt);
}

TEST(EngineSettings, BelievesDynamosWorkerWhereTheEngineFileIsNotHere) {
  const std::string worker = "python3 -m dynamo.trtllm --model-path m --kv-block-size 64";
  const EngineSettings unseen = SettingsOf(worker + " --extra-engine-args x.yaml");
  EXPECT_EQ(unseen.block_size.value, 64u);
  EXPECT_EQ(unseen.block_size.written->name, "--kv-block-size");
  const EngineSettings seen = SettingsOf(worker);
  EXPECT_EQ(seen.block_size.value, 32u);
  EXPECT_EQ(seen.worker_block_size.value, 64u);
  EXPECT_EQ(SettingsOf("DYN_TRTLLM_KV_BLOCK_SIZE=64 python3 -m dynamo.trtllm --extra-engine-args x")
                .block_size.value,
            64u);
}

TEST(EngineSettings, ReadsNumbersAsVllmWritesThem) {
  const EngineSettings settings = SettingsOf(
      "vllm serve m --block_size 32 --max-model-len 32K --max-num-seqs 1k -tp 4 "
      "--data-parallel-size=2 --gpu-memory-utilization 0.85 --decode-context-parallel-size 2");
  EXPECT_EQ(settings.block_size.value, 64u);
  EXPECT_EQ(settings.context_length.value, 32768u);
  EXPECT_EQ(settings.max_sequences.value, 1000u);
  EXPECT_EQ(settings.tensor_parallel, 4u);
  EXPECT_EQ(settings.data_parallel, 2u);
  EXPECT_EQ(settings.memory_fraction.value, 0.85);
  const EngineSettings unreadable = SettingsOf("vllm serve m --block-size $SIZE");
  EXPECT_EQ(unreadable.block_size.value, std::nullopt);
  EXPECT_TRUE(unreadable.block_size.written);
}

TEST(EngineSettings, KnowsWhatTurnsPrefixCachingOff) {
  EXPECT_EQ(SettingsOf("vllm serve m --no-enable-prefix-caching").prefix_caching.value, false);
  EXPECT_EQ(SettingsOf("vllm serve m --enable-prefix-caching").prefix_caching.value, true);
  EXPECT_EQ(SettingsOf("sglang serve m --disable-radix-cache").prefix_caching.value, false);
}

TEST(EngineSettings, ReadsThePublisherOfVllm) {
  const PublisherSettings on =
      SettingsOf(
          "vllm serve m --kv-events-config '{\"enable_kv_cache_events\": true, "
          "\"endpoint\": \"tcp://0.0.0.0:5557\", \"replay_endpoint\": \"tcp://*:5558\"}'")
          .publisher;
  EXPECT_EQ(on.enabled.value, true);
  EXPECT_EQ(on.publisher.value, "zmq");
  EXPECT_EQ(on.endpoint.value, "tcp://0.0.0.0:5557");
  EXPECT_EQ(on.replay_endpoint.value, "tcp://*:5558");
  EXPECT_EQ(on.topic.value, "");
  EXPECT_TRUE(on.whole && on.whole->span);

  const auto null = SettingsOf(
      R"(vllm serve m --kv-events-config={\"enable_kv_cache_events\":true,\"publisher\":\"null\"})");
  EXPECT_EQ(null.publisher.enabled.value, false);
  EXPECT_EQ(null.publisher.publisher.value, "null");
  const auto off = SettingsOf("vllm serve m --kv-events-config '{\"publisher\": \"zmq\"}'");
  EXPECT_EQ(off.publisher.enabled.value, false);
  const auto bad = SettingsOf("vllm serve m --kv-events-config '{enable: true'");
  EXPECT_TRUE(bad.publisher.malformed);
  EXPECT_EQ(bad.publisher.enabled.value, std::nullopt);
}

TEST(EngineSettings, KnowsThatOlderVllmPublishesNowhereByDefault) {
  const std::string command =
      "docker run vllm/vllm-openai:v{} --model m --kv-events-config "
      "'{{\"enable_kv_cache_events\": true}}'";
  EXPECT_EQ(SettingsOf(fmt::format(fmt::runtime(command), "0.11.0")).publisher.enabled.value,
            false);
  EXPECT_EQ(SettingsOf(fmt::format(fmt::runtime(command), "0.12.0")).publisher.enabled.value, true);
}

TEST(EngineSettings, TakesTheVersionOfNoOtherImageForTheEngines) {
  const std::string command =
      "docker run {} vllm serve m --kv-events-config '{{\"enable_kv_cache_events\": true}}'";
  for (const char* image : {"nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.9.0", "corp/vllm:0.3.0"}) {
    const EngineSettings settings = SettingsOf(fmt::format(fmt::runtime(command), image));
    EXPECT_EQ(settings.publisher.enabled.value, true) << image;
    EXPECT_EQ(settings.memory_fraction.value, std::nullopt) << image;
  }
}

TEST(EngineSettings, ReadsMembersOfThePublisherThatAreFlags) {
  const PublisherSettings publisher =
      SettingsOf(
          "vllm serve m --kv_events_config.enable_kv_cache_events true "
          "--kv-events-config.publisher=zmq --kv-events-config.endpoint tcp://0.0.0.0:5559")
          .publisher;
  EXPECT_EQ(publisher.enabled.value, true);
  EXPECT_EQ(publisher.endpoint.value, "tcp://0.0.0.0:5559");
  EXPECT_TRUE(publisher.endpoint.written && publisher.endpoint.written->span);
  EXPECT_EQ(publisher.replay_endpoint.value, std::nullopt);
  const PublisherSettings both =
      SettingsOf(
          "vllm serve m --kv-events-config '{\"enable_kv_cache_events\": true}' "
          "--kv-events-config.topic x")
          .publisher;
  EXPECT_EQ(both.enabled.value, false);
}

TEST(EngineSettings, ReadsThePublisherOfSglang) {
  EXPECT_EQ(SettingsOf("sglang serve m --kv-events-config '{\"publisher\": \"zmq\"}'")
                .publisher.enabled.value,
            true);
  EXPECT_EQ(SettingsOf("sglang serve m --kv-events-config '{}'").publisher.enabled.value, false);
}

TEST(EngineSettings, ReadsWhatDynamosWorkersPublish) {
  EXPECT_EQ(SettingsOf("python3 -m dynamo.trtllm --model-path m").publisher.enabled.value, false);
  EXPECT_EQ(SettingsOf("python3 -m dynamo.trtllm --publish-kv-events").publisher.enabled.value,
            true);
  EXPECT_EQ(SettingsOf("python3 -m dynamo.trtllm --publish-kv-events").event_buffer.value,
            std::nullopt);
  EXPECT_EQ(SettingsOf("python3 -m dynamo.vllm --model m").publisher.enabled.value, std::nullopt);
  EXPECT_EQ(SettingsOf("python3 -m dynamo.vllm --model m").port.value, std::nullopt);
}

TEST(EngineSettings, ReadsOverridesOfDynamosWorker) {
  const EngineSettings settings = SettingsOf(
      "python3 -m dynamo.trtllm --override-engine-args '{\"kv_cache_config\": "
      "{\"tokens_per_block\": 64}}' --trtllm.kv_cache_config.enable_block_reuse false");
  EXPECT_EQ(settings.block_size.value, 64u);
  EXPECT_EQ(settings.prefix_caching.value, false);
}

TEST(EngineSettings, ReadsAConfigFileOfVllm) {
  const SourceFile files[] = {{"c.yaml",
                               "block-size: 32\nkv-events-config:\n  enable_kv_cache_events: true\n"
                               "  endpoint: tcp://*:6000\n"},
                              {"x.sh", "vllm serve m --config c.yaml"}};
  const ReadDeployment read = ReadDeploymentFiles(files);
  ASSERT_THAT(read.deployment.programs, SizeIs(1));
  const EngineSettings settings = EngineSettingsOf(read.deployment.programs[0]);
  EXPECT_EQ(settings.block_size.value, 32u);
  EXPECT_EQ(settings.publisher.enabled.value, true);
  EXPECT_EQ(settings.publisher.endpoint.value, "tcp://*:6000");
  EXPECT_EQ(settings.publisher.endpoint.written->place, (FilePlace{"c.yaml", 4}));
}

TEST(RouterSettings, HasTheDefaultsOfEachRouter) {
  const auto frontend = RouterSettingsOf(ProgramOf("python3 -m dynamo.frontend"));
  EXPECT_EQ(frontend.block_size.value, 16u);
  EXPECT_EQ(frontend.mode.value, "round-robin");
  EXPECT_EQ(frontend.kv_events.value, true);
  EXPECT_EQ(RouterSettingsOf(ProgramOf("python3 -m dynamo.router")).block_size.value, 128u);
  const auto fathom = RouterSettingsOf(ProgramOf("fathom serve --worker-urls http://a http://b"));
  EXPECT_EQ(fathom.block_size.value, std::nullopt);
  EXPECT_EQ(fathom.mode.value, "kv");
  EXPECT_THAT(fathom.workers, SizeIs(2));
}

TEST(RouterSettings, TakesAFlagBeforeAVariable) {
  const auto settings = RouterSettingsOf(
      ProgramOf("DYN_KV_CACHE_BLOCK_SIZE=16 DYN_ROUTER_USE_KV_EVENTS=false python3 -m "
                "dynamo.frontend --kv-cache-block-size 32 --router-mode=kv"));
  EXPECT_EQ(settings.block_size.value, 32u);
  EXPECT_EQ(settings.mode.value, "kv");
  EXPECT_EQ(settings.kv_events.value, false);
  EXPECT_EQ(
      RouterSettingsOf(ProgramOf("python3 -m dynamo.frontend --no-kv-events")).kv_events.value,
      false);
}

TEST(Identity, GoesByTheNameOfAnImage) {
  using enum ProgramRole;
  const Identity trtllm{kEngine, EngineKind::kTrtllm, false};
  EXPECT_EQ(IdentityOfImage("nvcr.io/nvidia/tensorrt-llm/release:1.0.0"), trtllm);
  const Identity vllm{kEngine, EngineKind::kVllm, false};
  EXPECT_EQ(IdentityOfImage("localhost:5000/x/vllm-openai"), vllm);
  const Identity runtime{kOther, EngineKind::kSglang, true};
  EXPECT_EQ(IdentityOfImage("nvcr.io/nvidia/ai-dynamo/sglang-runtime:0.9.0"), runtime);
  EXPECT_EQ(IdentityOfImage("ghcr.io/x/fathom:1").role, kFathom);
  EXPECT_EQ(IdentityOfImage("lmsysorg/sglang-router").role, kOther);
  EXPECT_EQ(IdentityOfImage("postgres:16").role, kOther);
}

TEST(Identity, ReadsTheVersionOfATag) {
  EXPECT_EQ(VersionOf("vllm/vllm-openai:v0.9.0"), "0.9.0");
  EXPECT_EQ(VersionOf("localhost:5000/lmsysorg/sglang:0.5.3-cu126@sha256:00"), "0.5.3");
  EXPECT_EQ(VersionOf("nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc1"), "1.2.0");
  EXPECT_EQ(VersionOf("my-registry/tensorrtllm-runtime:1.5.0"), "1.5.0");
  EXPECT_EQ(VersionOf("localhost:5000/vllm/vllm-openai"), "");
  EXPECT_EQ(VersionOf("vllm/vllm-openai:latest"), "");
  EXPECT_EQ(VersionOf("vllm/vllm-openai:my-tag"), "");
}

TEST(Identity, ReadsNoVersionOfATagThatCountsSomethingElse) {
  EXPECT_EQ(VersionOf("corp/vllm:0.3.0"), "");
  EXPECT_EQ(VersionOf("xvllm/vllm-openai:0.3.0"), "");
  EXPECT_EQ(VersionOf("nvcr.io/nvidia/vllm:25.10-py3"), "");
  EXPECT_EQ(VersionOf("nvcr.io/nvidia/ai-dynamo/vllm-runtime:25.10"), "");
}

}  // namespace
}  // namespace fathom
