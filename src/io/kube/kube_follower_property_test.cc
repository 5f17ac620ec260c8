// Random histories of a cluster: objects come, change and go, watches break in every way, versions
// are compacted. In the end the listener's picture is the server's, and nothing was told gone that
// the server has not deleted.
#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "io/kube/kube_follower.h"
#include "testing/kube_api.h"
#include "testing/kube_follow_rig.h"

namespace fathom {
namespace {

class RandomHistory {
 public:
  explicit RandomHistory(uint64_t seed) : random_(seed) {
    for (const char* name : {"always-0", "always-1", "always-2"}) api_.Put(name, Weight());
  }

  void Play() {
    KubeFollowerOptions options = QuickOptions();
    options.page = 1 + random_.Below(4);
    if (random_.Below(4) == 0) options.relist_after = std::chrono::milliseconds(1);
    KubeFollowRig rig(api_.url(), options);
    for (int i = 0; i < 5; ++i) Step();
    rig.Start();
    const uint64_t steps = 5 + random_.Below(40);
    for (uint64_t i = 0; i < steps; ++i) {
      Step();
      if (random_.Below(3) == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(random_.Below(1500)));
      }
    }
    EXPECT_TRUE(Becomes([&] { return Same(rig.recorder.picture()); }));
    // Whatever the last faults were, a change is still told.
    api_.Put("last", Weight());
    EXPECT_TRUE(Becomes([&] { return Same(rig.recorder.picture()); }));
    std::map<std::string, size_t> gone;
    for (const std::string& line : rig.recorder.lines()) {
      if (line.starts_with("gone ")) ++gone[line.substr(5)];
    }
    for (const auto& [name, times] : gone) EXPECT_LE(times, deleted_[name]) << name;
    for (const char* name : {"always-0", "always-1", "always-2"}) EXPECT_EQ(gone[name], 0u);
  }

 private:
  std::string Weight() { return fmt::format(R"("weight":{})", random_.Below(3)); }

  void Step() {
    const std::string name = fmt::format("o{}", random_.Below(6));
    switch (random_.Below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return api_.Put(name, Weight(), fmt::format("uid-{}", random_.Below(2)));
      case 4:
        return api_.Put(fmt::format("always-{}", random_.Below(3)), Weight());
      case 5:
      case 6:
        if (api_.objects().contains(name)) ++deleted_[name];
        return api_.Delete(name);
      case 7:
        return api_.Bookmark();
      case 8:
        return api_.Compact();
      case 9:
        return api_.EndWatches(static_cast<KubeApi::End>(random_.Below(6)));
      case 10:
        api_.Compact();
        return api_.EndWatches(KubeApi::End::kCut);
      default:
        return Fault();
    }
  }

  void Fault() {
    constexpr int kStatuses[] = {410, 503, 403, 401, 429, 500};
    if (random_.Below(4) == 0) return api_.Answer([](RawSocket&, const std::string&) {});
    const int status = kStatuses[random_.Below(std::size(kStatuses))];
    api_.AnswerWith(status, "content-type: application/json\r\n", "{}");
  }

  // Contents alone: what the follower has not been told for it is no change.
  bool Same(const std::map<std::string, std::string>& told) const {
    const auto objects = api_.objects();
    if (told.size() != objects.size()) return false;
    return std::ranges::equal(told, objects, [](const auto& a, const auto& b) {
      return a.first == b.first && Content(a.second) == Content(b.second);
    });
  }
  static std::string Content(const std::string& object) {
    const auto json = Json::Parse(object);
    std::string out;
    json->Find("weight")->WriteTo(out);
    return out + *json->Find("metadata")->Find("uid")->string();
  }

  Random random_;
  KubeApi api_;
  std::map<std::string, size_t> deleted_;
};

TEST(KubeFollowerPropertyTest, ThePictureIsTheServersAfterAnyHistory) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    RandomHistory(seed).Play();
    if (HasFailure()) {
      FAIL() << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace fathom
