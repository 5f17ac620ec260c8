#include "io/net/connect_race.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/net/address_order.h"
#include "testing/loop_thread.h"

namespace fathom {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

// A listening socket whose kernel accepts connections.
class Listening {
 public:
  explicit Listening(int backlog = 64) : fd_(::socket(AF_INET, SOCK_STREAM, 0)) {
    const Address any = *Address::Numeric("127.0.0.1", 0);
    CHECK(::bind(fd_, any.get(), any.size()) == 0 && ::listen(fd_, backlog) == 0);
    sockaddr_storage bound{};
    socklen_t size = sizeof(bound);
    ::getsockname(fd_, reinterpret_cast<sockaddr*>(&bound), &size);
    address_ = Address::Of(reinterpret_cast<sockaddr*>(&bound), size);
  }
  ~Listening() { ::close(fd_); }
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  const Address& address() const { return address_; }

 private:
  const int fd_;
  Address address_;
};

// An address that does not answer: the queue of its listener is full.
class Blackhole {
 public:
  Blackhole() : listening_(0) {
    for (int i = 0; i < 4; ++i) fillers_.push_back(*Socket::BeginConnect(listening_.address()));
  }
  ~Blackhole() {
    for (const int fd : fillers_) ::close(fd);
  }
  Blackhole(const Blackhole&) = delete;
  Blackhole& operator=(const Blackhole&) = delete;
  const Address& address() const { return listening_.address(); }

 private:
  Listening listening_;
  std::vector<int> fillers_;
};

Address Refusing() {
  const Listening gone;
  return gone.address();
}

struct Ending {
  bool connected = false;
  NetCause cause = NetCause::kOther;
  Duration took{};
};

Ending Connect(std::vector<Address> addresses, Duration patience,
               Cancellation* cancellation = nullptr) {
  Loop loop;
  const TimePoint begun = std::chrono::steady_clock::now();
  const auto socket = RunToEnd(loop, [&] {
    return ConnectFirst(loop, std::move(addresses), loop.now() + patience, cancellation);
  });
  Ending ending{.connected = socket.has_value(), .took = std::chrono::steady_clock::now() - begun};
  if (!socket) ending.cause = socket.error().cause;
  return ending;
}

TEST(ConnectRace, ConnectsToTheOnlyAddress) {
  const Listening server;
  EXPECT_TRUE(Connect({server.address()}, seconds(5)).connected);
}

TEST(ConnectRace, GoesOnAtOnceWhenAnAddressRefuses) {
  const Listening server;
  const std::vector<Address> addresses = {Refusing(), Refusing(), Refusing(), server.address()};
  const Ending ending = Connect(addresses, seconds(60));
  EXPECT_TRUE(ending.connected);
  EXPECT_LT(ending.took, seconds(10));
}

TEST(ConnectRace, DoesNotLetASilentAddressTakeTheTimeOfTheNext) {
  const Blackhole dead;
  const Listening server;
  const Ending ending = Connect({dead.address(), dead.address(), server.address()}, seconds(60));
  EXPECT_TRUE(ending.connected);
  EXPECT_LT(ending.took, seconds(20)) << "of a minute";
}

TEST(ConnectRace, GivesEveryAddressItsTurnBeforeTheDeadline) {
  const Blackhole dead;
  const Listening server;
  std::vector<Address> addresses(8, dead.address());
  addresses.push_back(server.address());
  EXPECT_TRUE(Connect(addresses, milliseconds(1000)).connected);
}

TEST(ConnectRace, SaysWhyNoAddressCouldBeReached) {
  const Blackhole dead;
  EXPECT_EQ(Connect({Refusing(), Refusing()}, seconds(5)).cause, NetCause::kRefused);
  EXPECT_EQ(Connect({dead.address()}, milliseconds(50)).cause, NetCause::kTimeout);
  EXPECT_EQ(Connect({dead.address(), Refusing()}, milliseconds(50)).cause, NetCause::kTimeout);
  EXPECT_EQ(Connect({}, seconds(5)).cause, NetCause::kNoSuchName);
}

TEST(ConnectRace, TriesABoundedNumberAtOnce) {
  const Blackhole dead;
  EXPECT_EQ(Connect(std::vector<Address>(100, dead.address()), milliseconds(400)).cause,
            NetCause::kTimeout);
}

TEST(ConnectRace, EndsWhenItIsCancelled) {
  const Blackhole dead;
  Loop loop;
  Cancellation cancellation;
  loop.Post([&] { cancellation.Cancel(); });
  const auto socket = RunToEnd(loop, [&] {
    return ConnectFirst(loop, {dead.address(), dead.address()}, kNever, &cancellation);
  });
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().cause, NetCause::kCancelled);
  const Listening server;
  EXPECT_EQ(Connect({server.address()}, seconds(5), &cancellation).cause, NetCause::kCancelled);
}

std::vector<Address> Of(const std::vector<std::string>& hosts) {
  std::vector<Address> addresses;
  for (const std::string& host : hosts) addresses.push_back(*Address::Numeric(host, 1));
  return addresses;
}

TEST(AddressOrder, TakesTheFamiliesInTurn) {
  EXPECT_EQ(FamiliesInTurn(Of({"::1", "::2", "::3", "10.0.0.1", "10.0.0.2"})),
            Of({"::1", "10.0.0.1", "::2", "10.0.0.2", "::3"}));
  EXPECT_EQ(FamiliesInTurn(Of({"10.0.0.1"})), Of({"10.0.0.1"}));
  EXPECT_TRUE(FamiliesInTurn({}).empty());
}

TEST(AddressOrder, PrefersIpv4ToLocalIpv6Addresses) {
  EXPECT_EQ(InOrderOfPreference(Of({"10.0.0.1"}), Of({"fd00::1"})), Of({"10.0.0.1", "fd00::1"}));
  EXPECT_EQ(InOrderOfPreference({}, Of({"fd00::1"})), Of({"fd00::1"}));
  EXPECT_EQ(InOrderOfPreference(Of({"10.0.0.1"}), {}), Of({"10.0.0.1"}));
}

}  // namespace
}  // namespace fathom
