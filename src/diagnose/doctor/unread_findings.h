// Prompts that a running Fathom routes without their prefix, as a finding.
#pragma once

#include <cstdint>
#include <string>

#include "diagnose/findings/finding.h"

namespace fathom {

// What the router reports about one model, in its log or on /health. Texts may be empty.
struct SaidUnread {
  std::string source;  // where: "serve.log:12", "GET http://.../health"
  std::string model;
  std::string unread;  // how many: "6 of the last 50"
  std::string reason;  // as the router spells it: "no_tokenizer"
  std::string route;
  std::string engine;
  std::string fix;
  uint64_t cost_tokens = 0;
  double share = 1;  // of the prompts
};

Finding UnreadFinding(const SaidUnread& said);

}  // namespace fathom
