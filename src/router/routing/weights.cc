#include "router/routing/weights.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/text.h"

namespace fathom {
namespace {

struct Overridable {
  std::string_view name;
  double Weights::* field;
  double most;
};

constexpr std::array kOverridable = {
    Overridable{"overlap_score_credit", &Weights::overlap_credit, 1},
    Overridable{"prefill_load_scale", &Weights::prefill_scale, 1e6},
    Overridable{"decode_active_request_weight", &Weights::active_request, 1e9},
    Overridable{"host_cache_hit_weight", &Weights::host_hit, 1},
    Overridable{"disk_cache_hit_weight", &Weights::disk_hit, 1},
    Overridable{"router_temperature", &Weights::temperature, 100},
};

std::string AllNames() {
  std::string names;
  for (const Overridable& weight : kOverridable)
    names.append(names.empty() ? "" : ", ").append(weight.name);
  return names;
}

Result<void> Apply(Weights& weights, std::string_view item) {
  const size_t equals = item.find('=');
  const std::string_view name = Trim(item.substr(0, equals));
  const std::string text(equals == item.npos ? "" : Trim(item.substr(equals + 1)));
  for (const Overridable& weight : kOverridable) {
    if (name != weight.name) continue;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= 0 && value <= weight.most)) {
      return Fail(Blame::kCaller, "{} must be a number from 0 to {}", name, weight.most);
    }
    weights.*weight.field = value;
    return {};
  }
  return Fail(Blame::kCaller, "unknown weight; known weights: {}", AllNames());
}

}  // namespace

Result<Weights> Override(const Weights& usual, std::string_view changes) {
  Weights weights = usual;
  for (const std::string_view item : SplitAny(changes, ",;")) {
    if (!Trim(item).empty()) TRY_VOID(Apply(weights, item));
  }
  return weights;
}

}  // namespace fathom
