// The incident of an empty index, as a report: input of the tests of all views.
#pragma once

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "diagnose/findings/report.h"

namespace fathom {

inline Finding SampleMismatch() {
  Finding finding = MakeFinding(
      FindingId::kBlockSizeMismatch, "Frontend",
      "The frontend cuts prompts into blocks of 16 tokens, both TensorRT-LLM workers into 32.");
  finding.why =
      "Hashes of blocks of different sizes are never equal, so no event finds its parent, the "
      "index "
      "stays empty, and every request is routed by load alone. Every follow-up turn is prefilled "
      "from its first token.";
  finding.evidence = {
      "agg_router.yaml:9: DYN_ROUTER_MODE=kv, and no DYN_KV_CACHE_BLOCK_SIZE: Dynamo 0.9 assumes "
      "16",
      "agg_router.yaml:31: python3 -m dynamo.trtllm, and no tokens_per_block: TensorRT-LLM uses 32",
      "frontend.log: 10 of 10 decisions have \"cached blocks: 0, tree size: 0\"",
      "frontend.log: 18,412 x \"Failed to find parent block\", 17,903 x \"Failed to find block to "
      "remove\", in 9 min"};
  finding.place = {"agg_router.yaml", 9};
  finding.fixes = {
      {.what = "Set DYN_KV_CACHE_BLOCK_SIZE=32 on the frontend.",
       .setting = "- name: DYN_KV_CACHE_BLOCK_SIZE\n  value: \"32\"",
       .diff = "--- a/agg_router.yaml\n+++ b/agg_router.yaml\n@@ -9,4 +9,6 @@\n       envs:\n"
               "         - name: DYN_ROUTER_MODE\n           value: kv\n"
               "+        - name: DYN_KV_CACHE_BLOCK_SIZE\n+          value: \"32\"\n"
               "     TRTLLMDecodeWorker:\n",
       .cost = "One restart of the frontend; the workers and what they hold stay as they are.",
       .verify =
           "\"tree size\" in the scheduler's lines grows within a minute, and follow-up turns "
           "get faster."},
      {.what = "Give the engines blocks of 16 tokens instead.",
       .setting = "kv_cache_config:\n  tokens_per_block: 16",
       .diff = "",
       .cost = "Both workers restart and lose what they hold; twice as many events.",
       .verify = "The first stored event of each worker has 16 tokens per block."}};
  finding.gain = 0.62;
  finding.gain_basis = "62 % of prompt tokens are turns of a conversation that was seen before";
  return finding;
}

inline Finding SampleChurn() {
  Finding finding = MakeFinding(
      FindingId::kChurn, "http://10.0.3.12:8000",
      "A cached block lives about 41 s, and the next turn of a conversation comes after 55 s.");
  finding.why = "Once blocks match, about half of the follow-up turns would still find nothing.";
  finding.evidence = {"worker_kv_evicted_blocks_total grew by 3,120/min over 9 min",
                      "25 concurrent requests of 9,400 tokens use 239,862 of 449,576 tokens"};
  finding.fixes = {{.what = "Raise free_gpu_memory_fraction from 0.80 to 0.90.",
                    .setting = "kv_cache_config:\n  free_gpu_memory_fraction: 0.90",
                    .diff = "",
                    .cost = "3.4 GiB less for activations on each GPU; the workers restart.",
                    .verify = "Evictions per minute fall by a third at the same load."},
                   {.what = "Lower max_batch_size from 256 to 64.",
                    .setting = "max_batch_size: 64",
                    .diff = "",
                    .cost = "Requests beyond 64 per worker wait.",
                    .verify = "Active tokens stay below 60 % of capacity."}};
  finding.gain = 0.21;
  finding.gain_basis = "lifetime of a block against the time between turns";
  return finding;
}

inline Finding SampleReplay() {
  Finding finding = MakeFinding(FindingId::kReplayMissing, "TRTLLMDecodeWorker",
                                "A KV event that is lost cannot be asked for again.");
  finding.place = {"agg_router.yaml", 31};
  finding.fixes = {{.what = "Set replay_endpoint in the KV events config.",
                    .setting = "replay_endpoint: tcp://*:5558",
                    .diff = "",
                    .cost = "A few MiB on each worker.",
                    .verify = ""}};
  return finding;
}

inline Section SampleConfiguration() {
  Section section;
  section.part = Part::kConfiguration;
  section.lines = {
      "2 workers with TP 4 serve Llama-3.1-70B-Instruct (141 GB of weights in bf16) on 8 H100.",
      "Prefix caching is on for both workers (enable_block_reuse: true)."};
  section.tables = {{.title = "Block size, wherever it is said",
                     .columns = {"Side", "Tokens", "Where", "How it is known"},
                     .rows = {{{"router", Tone::kPlain},
                               {"16", Tone::kBad},
                               {"Frontend, agg_router.yaml:9", Tone::kPlain},
                               {"default of Dynamo 0.9, nothing is set", Tone::kDoubtful}},
                              {{"engine", Tone::kPlain},
                               {"32", Tone::kGood},
                               {"TRTLLMDecodeWorker, agg_router.yaml:31", Tone::kPlain},
                               {"default of TensorRT-LLM", Tone::kDoubtful}},
                              {{"engine", Tone::kPlain},
                               {"32", Tone::kGood},
                               {"http://10.0.3.12:8000/server_info", Tone::kPlain},
                               {"reported by the engine", Tone::kGood}},
                              {{"events", Tone::kPlain},
                               {"32", Tone::kGood},
                               {"tcp://10.0.3.12:5557", Tone::kPlain},
                               {"counted in 214 stored blocks", Tone::kGood}}}}};
  return section;
}

inline Plot SampleTtft() {
  return {.kind = Plot::Kind::kBars,
          .title = "Time to first token",
          .x_label = "",
          .y_label = "ms, median",
          .categories = {"first turns", "follow-up turns"},
          .series = {{.name = "median", .x = {}, .y = {812, 846}, .tone = Tone::kPlain}},
          .caption = "Follow-up turns take 846 ms, first turns 812 ms: nothing is used again."};
}

inline Plot SampleBlocks() {
  Plot plot{.kind = Plot::Kind::kLines,
            .title = "Cached blocks",
            .x_label = "minutes",
            .y_label = "blocks",
            .categories = {},
            .series = {{.name = "held by the engines", .x = {}, .y = {}, .tone = Tone::kPlain},
                       {.name = "known to the router", .x = {}, .y = {}, .tone = Tone::kBad}},
            .caption = "The engines hold 5,504 blocks, the router knows of none."};
  for (int i = 0; i <= 36; ++i) {
    const double minute = i / 4.0;
    const double held =
        5504 * (1 - std::exp(-minute / 1.4)) + (i % 5 - 2) * 45 * std::min(minute, 1.0);
    plot.series[0].x.push_back(minute);
    plot.series[0].y.push_back(held);
    plot.series[1].x.push_back(minute);
    plot.series[1].y.push_back(0);
  }
  return plot;
}

inline Section SampleSync() {
  Section section;
  section.part = Part::kSync;
  section.lines = {
      "Workers publish KV events over ZeroMQ; the frontend receives them and cannot apply them.",
      "Removals outnumber stores 1 to 1.03: the cache churns, but that is not what empties the "
      "index."};
  section.tables = {
      {.title = "Lines of frontend.log",
       .columns = {"Line", "Times", "Per minute"},
       .rows = {{{"Failed to find parent block; skipping store operation", Tone::kPlain},
                 {"18,412", Tone::kBad},
                 {"2,046", Tone::kBad}},
                {{"Failed to find block to remove; skipping remove operation", Tone::kPlain},
                 {"17,903", Tone::kBad},
                 {"1,989", Tone::kBad}},
                {{"Selected worker: ... cached blocks: 0, tree size: 0", Tone::kPlain},
                 {"10", Tone::kDoubtful},
                 {"1", Tone::kDoubtful}}}}};
  section.plots = {SampleTtft(), SampleBlocks()};
  section.missing = {"lag and gaps of the event streams (--listen 30s would show them)"};
  return section;
}

inline Plot SampleMemory() {
  return {
      .kind = Plot::Kind::kBars,
      .title = "Memory of one GPU",
      .x_label = "",
      .y_label = "GiB",
      .categories = {"worker 0", "worker 1", "with fraction 0.90"},
      .series = {{.name = "weights", .x = {}, .y = {32.9, 32.9, 32.9}, .tone = Tone::kFaint},
                 {.name = "overhead", .x = {}, .y = {4.2, 4.2, 4.2}, .tone = Tone::kFaint},
                 {.name = "KV in use", .x = {}, .y = {18.3, 17.9, 18.1}, .tone = Tone::kBad},
                 {.name = "KV retained", .x = {}, .y = {16.0, 16.4, 20.5}, .tone = Tone::kGood},
                 {.name = "unused", .x = {}, .y = {8.6, 8.6, 4.3}, .tone = Tone::kPlain}},
      .caption = "Running requests use 53 % of the KV cache; 16.0 GiB are left to be used again."};
}

inline Section SamplePressure() {
  Section section;
  section.part = Part::kMemory;
  section.lines = {"One token takes 320 KiB over all layers, 80 KiB on each of 4 GPUs."};
  section.tables = {{.title = "KV cache of one worker",
                     .columns = {"", "Per GPU", "Tokens", "Blocks of 32"},
                     .rows = {{{"capacity", Tone::kPlain},
                               {"34.3 GiB", Tone::kPlain},
                               {"449,576", Tone::kPlain},
                               {"14,049", Tone::kPlain}},
                              {{"in use by 25 requests of 9,400 tokens", Tone::kPlain},
                               {"18.3 GiB", Tone::kDoubtful},
                               {"239,862", Tone::kDoubtful},
                               {"7,495", Tone::kDoubtful}},
                              {{"left to be used again", Tone::kPlain},
                               {"16.0 GiB", Tone::kPlain},
                               {"209,714", Tone::kPlain},
                               {"6,553", Tone::kPlain}}}}};
  section.plots = {SampleMemory()};
  section.missing = {
      "memory that other programs hold on the GPUs (--nvidia-smi FILE would show it)"};
  return section;
}

inline Report SampleReport() {
  Report report;
  report.version = "0.9.0";
  report.time = "2026-02-16T14:39:02Z";
  report.verdict =
      "Cache-aware routing does nothing: the router counts blocks of 16 tokens, the engines of 32.";
  report.looked_at = {
      {"manifest agg_router.yaml", true, "1 frontend, 1 kind of worker (2 replicas)"},
      {"logs frontend.log", true, "36,325 lines over 9 min"},
      {"worker http://10.0.3.12:8000", true, "TensorRT-LLM 1.2"},
      {"worker http://10.0.3.13:8000", false, "connection refused"}};
  report.sections = {SampleConfiguration(), SampleSync(), SamplePressure()};
  report.findings = {SampleMismatch(), SampleChurn(), SampleReplay()};
  report.sent = {{"GET", "http://10.0.3.12:8000/server_info", 1},
                 {"GET", "http://10.0.3.12:8000/health", 2},
                 {"GET", "http://10.0.3.13:8000/health", 1}};
  return report;
}

// Has the same text everywhere, and one of every element.
inline Report ReportThatSays(const std::string& text) {
  Finding finding = MakeFinding(FindingId::kNoEvents, text, text);
  finding.why = text;
  finding.evidence = {text, text};
  finding.place = {text, 3};
  finding.fixes = {{text, text, text, text, text}, {text, text, text, text, text}};
  finding.gain = 0.5;
  finding.gain_basis = text;
  Section section;
  section.lines = {text};
  section.tables = {{text, {text, text}, {{{text, Tone::kBad}, {text, Tone::kGood}}}}};
  const Plot bars{Plot::Kind::kBars,
                  text,
                  text,
                  text,
                  {text},
                  {{text, {}, {1}, Tone::kPlain}, {text, {}, {2}, Tone::kBad}},
                  text};
  const Plot lines{Plot::Kind::kLines,
                   text,
                   text,
                   text,
                   {},
                   {{text, {0, 1}, {1, 2}, Tone::kPlain}, {text, {0}, {1}, Tone::kBad}},
                   text};
  section.plots = {bars, lines};
  section.missing = {text};
  return {.version = text,
          .time = text,
          .verdict = text,
          .looked_at = {{text, true, text}, {text, false, text}},
          .sections = {section},
          .findings = {finding},
          .sent = {{text, text, 1}}};
}

}  // namespace fathom
