// With which account and certificates is etcd asked, as the operator set it?
#pragma once

#include "base/result.h"
#include "config/settings.h"
#include "config/sources.h"
#include "io/etcd/etcd_client.h"

namespace fathom {

// Reads the password from its file or variable. A password is never an argument, because other
// users of a machine see those.
Result<EtcdClientOptions> EtcdOptionsOf(const Settings& settings, const Environment& environment);

}  // namespace fathom
