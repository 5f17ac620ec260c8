// Who are we, by the program that the operator's kubeconfig names?
//
// It is run as kubectl runs it: its arguments and variables, $KUBERNETES_EXEC_INFO, nothing to read
// from, its complaints on our standard error. It may take kPluginPatience and write kPluginAnswer
// bytes; then it is ended.
//
// Threads  Blocks the calling one until the program has ended, or soon after `stop` is asked for.
// Errors   kCaller: names the program and what would help, never what it has printed.
#pragma once

#include <cstddef>
#include <stop_token>
#include <string_view>

#include "base/clock.h"
#include "io/kube/kubeconfig.h"

namespace fathom {

constexpr Duration kPluginPatience = std::chrono::seconds(30);
constexpr size_t kPluginAnswer = size_t{1} << 20;

Result<KubeIdentity> RunExecPlugin(const ExecPlugin& plugin, const KubeAccess& access,
                                   Duration patience = kPluginPatience,
                                   const std::stop_token& stop = {});

// What such a program prints.
Result<KubeIdentity> ReadExecCredential(std::string_view printed, std::string_view api_version);

}  // namespace fathom
