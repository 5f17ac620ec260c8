// Which group is this router part of, as the operator set it?
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "config/settings.h"
#include "config/sources.h"
#include "io/net/message_seal.h"
#include "router/replicas/replicas.h"

namespace fathom {

// Without reading files: whether the settings fit together.
Result<void> CheckReplicas(const Settings& settings);

// nullopt: of none. Reads the key and the credentials. `port` is the one that clients connect to.
Result<std::optional<ReplicasOptions>> ReplicasOptionsOf(const Settings& settings);

}  // namespace fathom
