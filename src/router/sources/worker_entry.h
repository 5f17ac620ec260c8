// What does a worker entry say? The same fields everywhere: in the configuration file and in
// watched files as YAML (config), in POST /workers and in the values of etcd as JSON.
#pragma once

#include <string_view>

#include "base/result.h"
#include "config/settings.h"
#include "router/discovery/directory.h"

namespace fathom {

inline constexpr size_t kLongestWorkerEntry = 64 << 10;  // bytes of JSON

// {"url": "http://host:port", "role": "decode", …}, or the URL alone as a JSON string. From
// outside: api_key_env may name only what --worker-key-env lists.
Result<WorkerRequest> ReadWorkerEntry(std::string_view json);

WorkerRequest RequestOf(const WorkerEntry& entry, WorkerRequest::From from);

}  // namespace fathom
