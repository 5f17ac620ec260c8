#include "io/net/hosts_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace fathom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> Hosts(const HostsFile::Table& table, const std::string& name) {
  std::vector<std::string> hosts;
  const auto found = table.find(name);
  if (found == table.end()) return hosts;
  for (const Address& address : found->second) hosts.push_back(address.ToString());
  return hosts;
}

TEST(HostsFile, ReadsNamesWithTheirAddresses) {
  const auto table = HostsFile::Parse(
      "# a comment\n"
      "127.0.0.1\tlocalhost\n"
      "::1 localhost ip6-localhost  # both\n"
      "\n"
      "10.0.0.1 Engine-1.test engine-1\r\n"
      "10.0.0.2   engine-1\n"
      "10.0.0.1 engine-1");
  EXPECT_THAT(Hosts(table, "localhost"), ElementsAre("127.0.0.1:0", "[::1]:0"));
  EXPECT_THAT(Hosts(table, "engine-1"), ElementsAre("10.0.0.1:0", "10.0.0.2:0"));
  EXPECT_THAT(Hosts(table, "engine-1.test"), ElementsAre("10.0.0.1:0"));
  EXPECT_THAT(table, SizeIs(4));
}

TEST(HostsFile, SkipsLinesThatItCannotRead) {
  const auto table = HostsFile::Parse("engine\n300.1.1.1 a\n10.0.0.1\n10.0.0.1 b!d\n" +
                                      std::string(5000, 'x') + " y\n10.0.0.3 c");
  EXPECT_THAT(table, SizeIs(1));
  EXPECT_THAT(Hosts(table, "c"), ElementsAre("10.0.0.3:0"));
}

TEST(HostsFile, UsesABoundedNumberOfAddresses) {
  std::string text;
  for (int i = 0; i < 2000; ++i) {
    text += "10.0." + std::to_string(i / 256) + "." + std::to_string(i % 256) + " many\n";
  }
  EXPECT_THAT(Hosts(HostsFile::Parse(text), "many"), SizeIs(HostsFile::kMaxAddresses));
}

class HostsFileOnDisk : public testing::Test {
 protected:
  ~HostsFileOnDisk() override { std::filesystem::remove(path_); }
  void Write(const std::string& text) { std::ofstream(path_, std::ios::trunc) << text; }
  const std::string path_ = testing::TempDir() + "hosts_file_test." + std::to_string(::getpid());
};

TEST_F(HostsFileOnDisk, IsReadAgainWhenItChanges) {
  HostsFile hosts(path_);
  EXPECT_EQ(hosts.Find("engine"), nullptr);
  Write("10.0.0.1 engine\n");
  EXPECT_TRUE(hosts.Refresh());
  ASSERT_NE(hosts.Find("ENGINE."), nullptr);
  // The same size, within the same tick of the file system's clock.
  Write("10.0.0.2 engine\n");
  EXPECT_TRUE(hosts.Refresh());
  EXPECT_EQ(hosts.Find("engine")->front().ToString(), "10.0.0.2:0");
  std::filesystem::remove(path_);
  EXPECT_TRUE(hosts.Refresh());
  EXPECT_EQ(hosts.Find("engine"), nullptr);
  EXPECT_FALSE(hosts.Refresh());
  Write("");
  EXPECT_FALSE(hosts.Refresh()) << "the same text";
}

}  // namespace
}  // namespace fathom
