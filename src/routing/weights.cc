#include "routing/weights.h"

#include <array>
#include <cmath>
#include <cstdlib>
#include <string>

#include "base/text.h"

namespace fathom {
namespace {

struct Wish {
  std::string_view name;
  double Weights::* field;
  double most;
};

constexpr std::array kWishes = {
    Wish{"overlap_score_credit", &Weights::overlap_credit, 1},
    Wish{"prefill_load_scale", &Weights::prefill_scale, 1e6},
    Wish{"decode_active_request_weight", &Weights::active_request, 1e9},
    Wish{"host_cache_hit_weight", &Weights::host_hit, 1},
    Wish{"disk_cache_hit_weight", &Weights::disk_hit, 1},
    Wish{"router_temperature", &Weights::temperature, 100},
};

std::string AllNames() {
  std::string names;
  for (const Wish& wish : kWishes) names.append(names.empty() ? "" : ", ").append(wish.name);
  return names;
}

Result<void> Apply(Weights& weights, std::string_view item) {
  const size_t equals = item.find('=');
  const std::string_view name = Trim(item.substr(0, equals));
  const std::string text(equals == item.npos ? "" : Trim(item.substr(equals + 1)));
  for (const Wish& wish : kWishes) {
    if (name != wish.name) continue;
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= 0 && value <= wish.most)) {
      return Fail(Blame::kCaller, "{} must be a number from 0 to {}", name, wish.most);
    }
    weights.*wish.field = value;
    return {};
  }
  return Fail(Blame::kCaller, "there is no such weight; there are: {}", AllNames());
}

}  // namespace

Result<Weights> Override(const Weights& usual, std::string_view wish) {
  Weights weights = usual;
  for (const std::string_view item : SplitAny(wish, ",;")) {
    if (!Trim(item).empty()) TRY_VOID(Apply(weights, item));
  }
  return weights;
}

}  // namespace fathom
