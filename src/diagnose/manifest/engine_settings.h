// What does this program's engine do, by its settings and by its own defaults?
//
// Defaults are those of vLLM 0.32, SGLang 0.5.23 and TensorRT-LLM 1.x; where they depend on the
// hardware, the model or the version, the value is nothing.
#pragma once

#include <cstdint>
#include <string>

#include "diagnose/manifest/program.h"

namespace fathom {

// A ZeroMQ publisher of KV events.
struct PublisherSettings {
  Setting<bool> enabled;           // as a whole, by all that decides it
  Setting<std::string> publisher;  // "zmq", "null"
  Setting<std::string> endpoint;
  Setting<std::string> replay_endpoint;  // value nothing: no replay
  Setting<std::string> topic;
  std::optional<Written> whole;  // --kv-events-config, or a member of it
  bool malformed = false;        // `whole` is no JSON object
};

struct EngineSettings {
  Setting<uint32_t> block_size;  // of its events: vLLM 16, SGLang 1, TensorRT-LLM 32
  // What Dynamo's worker of TensorRT-LLM takes it for, which does not change what the engine does.
  Setting<uint32_t> worker_block_size;
  Setting<bool> prefix_caching;
  PublisherSettings publisher;
  Setting<uint64_t> event_buffer;  // TensorRT-LLM: events kept to be polled; 0: none
  Setting<double> memory_fraction;
  Setting<uint64_t> max_sequences;
  Setting<uint64_t> batch_tokens;
  Setting<uint64_t> context_length;
  Setting<std::string> kv_dtype;
  Setting<std::string> offload;  // host memory for evicted blocks, as written
  uint32_t tensor_parallel = 1;
  uint32_t pipeline_parallel = 1;
  uint32_t data_parallel = 1;
  std::string model;
  Setting<uint16_t> port;  // HTTP
};
EngineSettings EngineSettingsOf(const Program& program);

struct RouterSettings {
  // Of Dynamo's frontend 16 where nothing is set, of its standalone router 128; of Fathom nothing.
  Setting<uint32_t> block_size;
  Setting<std::string> mode;
  Setting<bool> kv_events;
  // Of the index, as written: how long an entry lives without events, how large it grows, and to
  // which share it is cut then.
  Setting<std::string> ttl;
  Setting<std::string> max_tree_size;
  Setting<std::string> prune_ratio;
  Setting<std::string> poll_interval;  // of events that are polled
  std::vector<Written> workers;        // URLs, one each
};
RouterSettings RouterSettingsOf(const Program& program);

}  // namespace fathom
