#include "router/gateway/admin_door.h"

#include <gtest/gtest.h>

#include <string>

namespace fathom {
namespace {

int StatusOf(const AdminDoor& door, const std::string& headers, std::string_view method = "GET",
             std::string_view target = "/workers") {
  const std::string text =
      std::string(method) + " " + std::string(target) + " HTTP/1.1\r\n" + headers + "\r\n";
  RequestHead head;
  EXPECT_TRUE(ParseRequestHead(text, head)) << text;
  const auto refusal = door.Refuse(head);
  return refusal ? refusal->status : 200;
}

class AdminDoorTest : public testing::Test {
 protected:
  const KeyRing none_;
  const KeyRing boss_{{"boss"}};
};

TEST_F(AdminDoorTest, AnswersOnLoopbackToLoopbackNamesAlone) {
  const AdminDoor door(none_, {.loopback = true});
  for (const char* host : {"localhost", "LocalHost:8000", "localhost.:1", "127.0.0.1",
                           "127.9.9.9:1", "[::1]", "[::1]:8000"}) {
    EXPECT_EQ(StatusOf(door, std::string("Host: ") + host + "\r\n"), 200) << host;
  }
  for (const char* host :
       {"evil.example", "evil.example:8000", "localhost.evil.example", "localhost@evil", "",
        "127.0.0.1.evil.example", "a.localhost", "10.0.0.1:8000", "[::2]", "[::1", "0.0.0.0"}) {
    const std::string text = std::string("Host: ") + host + "\r\n";
    RequestHead head;
    if (!ParseRequestHead("GET / HTTP/1.1\r\n" + text + "\r\n", head)) continue;
    EXPECT_EQ(StatusOf(door, text), 403) << host;
  }
}

TEST_F(AdminDoorTest, TakesTheHostOfAnAbsoluteTarget) {
  const AdminDoor door(none_, {.loopback = true});
  EXPECT_EQ(StatusOf(door, "Host: localhost\r\n", "GET", "http://evil.example/workers"), 403);
  EXPECT_EQ(StatusOf(door, "Host: evil.example\r\n", "GET", "http://localhost/workers"), 200);
}

TEST_F(AdminDoorTest, NeedsNoNameWhereAKeyOrAnotherAddressProtects) {
  EXPECT_EQ(StatusOf(AdminDoor(boss_, {.loopback = true}),
                     "Host: fathom.example\r\nauthorization: Bearer boss\r\n"),
            200);
  EXPECT_EQ(StatusOf(AdminDoor(boss_, {.loopback = true}), "Host: fathom.example\r\n"), 401);
  EXPECT_EQ(StatusOf(AdminDoor(none_, {.loopback = false}), "Host: fathom.example\r\n"), 200);
}

TEST_F(AdminDoorTest, RefusesEveryOriginButItsOwn) {
  for (const AdminRules rules : {AdminRules{.loopback = true}, AdminRules{.loopback = false}}) {
    const AdminDoor door(none_, rules);
    const std::string host = "Host: localhost:8000\r\n";
    EXPECT_EQ(StatusOf(door, host + "Origin: http://localhost:8000\r\n"), 200);
    EXPECT_EQ(StatusOf(door, host + "origin: https://LOCALHOST:8000\r\n"), 200);
    for (const char* origin :
         {"null", "http://evil.example", "http://localhost", "http://localhost:8001",
          "http://localhost:8000.evil.example", "localhost:8000", "", "http://localhost:8000/"}) {
      EXPECT_EQ(StatusOf(door, host + "Origin: " + origin + "\r\n"), 403) << origin;
    }
    EXPECT_EQ(StatusOf(door, host + "Origin: http://localhost:8000\r\nOrigin: http://evil\r\n"),
              403);
  }
}

TEST_F(AdminDoorTest, RefusesForeignOriginsWithTheKeyToo) {
  const AdminDoor door(boss_, {.loopback = false});
  EXPECT_EQ(StatusOf(door, "Host: x\r\nOrigin: null\r\nauthorization: Bearer boss\r\n"), 403);
}

TEST_F(AdminDoorTest, WantsJsonWhereARequestHasContent) {
  const AdminDoor door(none_, {.loopback = true});
  const std::string host = "Host: localhost\r\n";
  for (const char* method : {"POST", "PUT"}) {
    for (const char* type :
         {"application/json", "Application/JSON; charset=utf-8", "application/json ;x=y"}) {
      EXPECT_EQ(StatusOf(door, host + "Content-Type: " + type + "\r\n", method), 200) << type;
    }
    for (const char* type : {"text/plain", "application/x-www-form-urlencoded", "text/json", "",
                             "application/jsonp", "text/plain;application/json"}) {
      const std::string headers = std::string("content-length: 2\r\nContent-Type: ") + type;
      EXPECT_EQ(StatusOf(door, host + headers + "\r\n", method), 415) << type;
    }
    EXPECT_EQ(StatusOf(door, host + "content-length: 2\r\n", method), 415);
  }
  EXPECT_EQ(StatusOf(door, host, "POST"), 415) << "without a body too";
  EXPECT_EQ(StatusOf(door, host, "DELETE"), 200);
}

TEST_F(AdminDoorTest, IsClosedToEveryoneWhereOnlyClientsHaveKeys) {
  const AdminDoor door(none_, {.closed = true, .loopback = true});
  EXPECT_EQ(StatusOf(door, "Host: localhost\r\n"), 403);
  EXPECT_EQ(StatusOf(door, "Host: localhost\r\nauthorization: Bearer client\r\n"), 403);
}

TEST_F(AdminDoorTest, GuardsNothingThatAnotherListenerHas) {
  EXPECT_TRUE(AdminDoor(none_, {}).Guards("/workers"));
  EXPECT_TRUE(AdminDoor(none_, {}).Guards("/workers/12"));
  EXPECT_TRUE(AdminDoor(none_, {}).Guards("/debug/index"));
  EXPECT_FALSE(AdminDoor(none_, {}).Guards("/metrics"));
  EXPECT_FALSE(AdminDoor(none_, {}).Guards("/workersx"));
  EXPECT_FALSE(AdminDoor(none_, {.elsewhere = true}).Guards("/workers"));
}

}  // namespace
}  // namespace fathom
