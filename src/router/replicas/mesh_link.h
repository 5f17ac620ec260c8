// The way to one other replica: dials it, and sends what is pushed.
//
// One direction: the other replica dials us to send to us. Where it is reached it says its id, and
// a number that is its process', so that messages to one go there alone, and a replica that has
// dialled itself sends nothing.
//
// Dialling  Again and again, after a random pause that doubles up to kLongestPause.
// Memory    An Outbox of kMostBytes. A peer that does not read is cut off after ten seconds.
// Lifetime  Run() keeps the link alive until it ends, soon after Stop().
// Threads   The loop's.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "io/net/cancellation.h"
#include "io/net/outbox.h"
#include "io/net/resolver.h"
#include "io/net/wakeable_wait.h"
#include "io/zmtp/zmtp_connection.h"

namespace fathom {

// Who a replica is to those that it dials, and that dial it.
struct MeshIdentity {
  std::string id;
  std::string process;  // of this process alone

  ZmtpProperties Properties() const;
};

class MeshLink {
 public:
  static constexpr size_t kMostBytes = 4 << 20;
  static constexpr Duration kDialTime = std::chrono::seconds(2);  // per address
  static constexpr Duration kLongestPause = std::chrono::seconds(1);

  // References must outlive Run().
  MeshLink(Loop& loop, Resolver& resolver, ByteBudget& budget, MeshIdentity self, std::string host,
           uint16_t port);

  // Until Stop().
  static Task<void> Run(std::shared_ptr<MeshLink> link);
  void Stop();

  // False: not connected, or too much waits.
  bool Push(std::shared_ptr<const std::string> message);
  bool PushBulk(std::shared_ptr<const std::string> message);

  bool connected() const { return connected_; }
  // It was found to be ourselves when it was last reached.
  bool loops_back() const { return loops_back_; }
  // Of the replica that was last reached; may be empty.
  const std::string& peer() const { return peer_; }
  // Why it is not connected, for operators.
  const std::string& problem() const { return problem_; }
  TimePoint changed() const { return changed_; }  // connected or not
  // Where it was last looked for.
  const std::vector<Address>& addresses() const { return addresses_; }

  uint64_t dropped() const { return dropped_ + outbox_.dropped(); }
  uint64_t sent_bytes() const { return sent_bytes_; }

 private:
  bool Usable();
  Task<bool> Dial();
  Task<bool> DialOne(Address address);
  void Greet();
  Task<void> Serve();
  Task<void> AwaitEnd();
  Task<void> Pause();
  void Lost();

  Loop& loop_;
  Resolver& resolver_;
  ByteBudget& budget_;
  const MeshIdentity self_;
  const std::string host_;
  const uint16_t port_;
  Random random_;
  Cancellation cancellation_;
  std::unique_ptr<ZmtpConnection> connection_;
  WakeableWait wake_;  // something is in the outbox, or the connection ended
  WakeableWait* pausing_ = nullptr;
  Outbox outbox_{kMostBytes};
  Duration pause_;
  std::vector<Address> addresses_;
  std::string peer_;
  std::string problem_ = "not dialled yet";
  TimePoint changed_;
  uint64_t dropped_ = 0;
  uint64_t sent_bytes_ = 0;
  bool connected_ = false;
  bool ended_ = false;    // the connection
  bool stalled_ = false;  // it did not take what was sent in time
  bool loops_back_ = false;
  bool stopped_ = false;
};

}  // namespace fathom
