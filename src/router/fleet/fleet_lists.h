// Which workers serve which model? The lists of a fleet, kept up to date member by member.
//
// A list is never changed: a change replaces the lists of one worker's models, and a copy shares
// all lists with the original. So a snapshot of a large fleet costs little.
//
// Threads  One at a time. Copies are independent of each other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fathom {

struct Member;

class FleetLists {
 public:
  using Serving = std::vector<const Member*>;

  // A member must outlive its time in the lists, and stay unchanged.
  void Add(const Member& member);
  void Remove(const Member& member);

  // By the time of joining.
  const Serving& routable() const { return *routable_; }
  const Serving& Of(std::string_view model) const;
  bool Knows(std::string_view model) const;
  bool IsAdapter(std::string_view model) const;
  std::string_view BaseOf(std::string_view model) const;

 private:
  struct Named {
    size_t members = 0;  // that have the model, routable or not
    std::shared_ptr<const Serving> serving;
  };
  using Names = std::map<std::string, Named, std::less<>>;
  // How many members have an adapter, and with which base models.
  struct Adapter {
    size_t members = 0;
    std::map<std::string, size_t, std::less<>> bases;
  };
  using Adapters = std::map<std::string, Adapter, std::less<>>;

  void Count(const Member& member, int times);
  void CountAdapters(const Member& member, int times);
  void Apply(const Member& member, void (*change)(std::shared_ptr<const Serving>&, const Member&));

  Names models_;
  std::shared_ptr<const Serving> routable_ = std::make_shared<Serving>();
  std::shared_ptr<const Serving> any_model_ =
      std::make_shared<Serving>();  // assumed to serve any model
  std::shared_ptr<const Adapters> adapters_ = std::make_shared<Adapters>();
  size_t members_with_any_ = 0;
  size_t being_asked_ = 0;  // their first answer is pending
  size_t reported_ = 0;
};

}  // namespace fathom
