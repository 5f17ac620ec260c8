// For any order of events: no worker waits forever, no remark is repeated, and no rank is indexed
// at a size that it does not have.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "router/fleet/block_size_agreement.h"
#include "testing/test_clock.h"

namespace fathom {
namespace {

using Kind = SizeRemark::Kind;
using std::chrono::seconds;

// Workers are called a, b, c...
WorkerId IdOf(char w) { return WorkerId(static_cast<uint64_t>(w)); }
std::string UrlOf(char w) { return std::string("http://") + w; }

struct AgreementRig {
  BlockSizeAgreement agreement;
  std::map<std::pair<char, uint32_t>, uint32_t> truth;  // the size in the rank's events now
  std::set<char> joined;
  std::set<std::string> mismatches;  // logged, until the rank reconnects
  std::set<std::string> refused;     // until they are admitted, fail or leave

  void ForgetWords(char w) {
    std::erase_if(mismatches, [&](const std::string& key) { return key.find(w) == 0; });
    refused.erase(UrlOf(w));
  }
  std::set<char> Trusted() const {
    std::set<char> trusted;
    for (const auto& [rank, size] : truth) {
      const Trust trust = agreement.TrustOf(IdOf(rank.first), rank.second);
      if (trust.state == TrustState::kTrusted) trusted.insert(rank.first);
    }
    return trusted;
  }
};

// The invariants that no order of events may break.
void CheckAgreement(AgreementRig& rig) {
  for (const SizeRemark& remark : rig.agreement.Take().remarks) {
    const std::string key =
        remark.url.substr(remark.url.size() - std::min<size_t>(remark.url.size(), 1)) +
        std::to_string(remark.rank);
    if (remark.kind == Kind::kMismatch) RC_ASSERT(rig.mismatches.insert(key).second);
    if (remark.kind == Kind::kRefused) RC_ASSERT(rig.refused.insert(remark.url).second);
    if (remark.kind == Kind::kReadmitted) RC_ASSERT(rig.refused.erase(remark.url) == 1);
  }
  for (const auto& [rank, size] : rig.truth) {
    const WorkerId id = IdOf(rank.first);
    const bool may = rig.agreement.MayIndex(id, size);
    const bool trusted = rig.agreement.TrustOf(id, rank.second).state == TrustState::kTrusted;
    RC_ASSERT(trusted <= may);
    if (trusted) RC_ASSERT(rig.agreement.SizeOf(id, rank.second).size == size);
    RC_ASSERT((rig.agreement.MembershipOf(id) == Membership::kRefused) <= !may);
  }
}

RC_GTEST_PROP(BlockSizeAgreement, SurvivesAnyOrderOfWhatHappens, ()) {
  const auto mixed = *rc::gen::inRange(0, 3) == 0;
  const auto configured = !mixed && *rc::gen::inRange(0, 3) == 0 ? 16u : 0u;
  const BlockSizeRules rules{.configured = configured, .mixed = mixed, .wait = seconds(5)};
  AgreementRig rig{.agreement = BlockSizeAgreement(rules, kTestBegin),
                   .truth = {},
                   .joined = {},
                   .mismatches = {},
                   .refused = {}};
  BlockSizeAgreement& agreement = rig.agreement;
  TimePoint now = kTestBegin;
  const std::vector<uint32_t> sizes = {16, 32, 64};
  const int steps = *rc::gen::inRange(1, 80);
  for (int step = 0; step < steps; ++step) {
    const char w = static_cast<char>(*rc::gen::inRange<int>('a', 'e'));
    const uint32_t rank = *rc::gen::inRange(0, 2);
    const uint32_t size = *rc::gen::elementOf(sizes);
    const bool newcomer = agreement.MembershipOf(IdOf(w)) != Membership::kAdmitted &&
                          agreement.SizeOf(IdOf(w)).source != SizeSource::kEvents;
    const std::set<char> trusted = rig.Trusted();
    const int what = *rc::gen::inRange(0, 10);
    switch (what) {
      case 0:
        agreement.Join(IdOf(w), UrlOf(w), now);
        agreement.Serves(IdOf(w), {w < 'd' ? "m" : "n"}, now);
        rig.joined.insert(w);
        break;
      case 1:
        agreement.Leave(IdOf(w), now);
        rig.joined.erase(w);
        std::erase_if(rig.truth, [w](const auto& entry) { return entry.first.first == w; });
        rig.ForgetWords(w);
        break;
      case 2:
        agreement.Reported(IdOf(w), EngineKind::kVllm, *rc::gen::inRange(0, 3) == 0 ? 0 : size,
                           now);
        std::erase_if(rig.mismatches, [w](const std::string& key) { return key.find(w) == 0; });
        break;
      case 3:
        agreement.Failed(IdOf(w), now);
        rig.ForgetWords(w);
        break;
      case 4:
      case 5:
        // A rank has one size until it is reset.
        if (!rig.joined.contains(w)) break;
        rig.truth.try_emplace({w, rank}, size);
        {
          const uint32_t true_size = rig.truth[{w, rank}];
          const bool may = agreement.Proven(IdOf(w), rank, true_size, now);
          RC_ASSERT(may == agreement.MayIndex(IdOf(w), true_size));
        }
        break;
      case 6:
        agreement.Reset(IdOf(w), rank, now);
        rig.truth.erase({w, rank});
        rig.mismatches.erase(std::string(1, w) + std::to_string(rank));
        break;
      case 7:
        agreement.Answered(IdOf(w), now);
        break;
      case 8:
        agreement.Renumbered(IdOf(w), rank, 1 - rank, now);
        rig.truth.erase({w, rank});
        rig.mismatches.erase(std::string(1, w) + std::to_string(rank));
        break;
      default:
        now += seconds(1);
    }
    agreement.Tick(now);
    CheckAgreement(rig);
    if (agreement.refused_to_start()) return;
    if (newcomer && (what == 0 || what == 2)) {
      for (const char other : trusted) {
        if (other == w) continue;
        RC_ASSERT(agreement.MembershipOf(IdOf(other)) == Membership::kAdmitted);
      }
    }
  }
  // In every case, no worker that answers is left waiting.
  agreement.Tick(now + seconds(10));
  if (agreement.refused_to_start()) return;
  RC_ASSERT(!agreement.starting());
  for (const char w : rig.joined) {
    agreement.Reported(IdOf(w), EngineKind::kVllm, 16, now + seconds(10));
    RC_ASSERT(agreement.MembershipOf(IdOf(w)) != Membership::kHeld);
  }
  // Every model that has workers has an admitted one.
  for (const std::string model : {"m", "n"}) {
    size_t members = 0, admitted = 0;
    for (const char w : rig.joined) {
      if ((w < 'd') != (model == "m")) continue;
      ++members;
      admitted += agreement.MembershipOf(IdOf(w)) == Membership::kAdmitted ? 1 : 0;
    }
    RC_ASSERT(members == 0 || admitted > 0);
  }
}

}  // namespace
}  // namespace fathom
