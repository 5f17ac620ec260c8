#include "base/log_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <thread>
#include <vector>

namespace fathom {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Rank = LogWriter::Rank;

std::string Lost(uint64_t count) { return fmt::format("lost {}\n", count); }

// A log at one end of a pipe that is not read until the test does.
class LogWriterTest : public testing::Test {
 protected:
  static constexpr size_t kPipe = 4096;

  LogWriterTest() {
    EXPECT_EQ(pipe(ends_.data()), 0);
    EXPECT_EQ(fcntl(ends_[1], F_SETPIPE_SZ, kPipe), static_cast<int>(kPipe));
  }
  ~LogWriterTest() override {
    writer_.reset();
    Hang();
    close(ends_[0]);
  }

  LogWriter& Writer(LogWriter::Room room = {}) { return writer_.emplace(ends_[1], Lost, room); }
  void Hang() {
    if (ends_[1] >= 0) close(std::exchange(ends_[1], -1));
  }
  // Reads beside it until the writer has ended.
  std::string AllAtTheEnd() {
    std::string text;
    std::thread reader([&] {
      std::array<char, 1000> piece{};
      for (ssize_t n; (n = read(ends_[0], piece.data(), piece.size())) > 0;) {
        text.append(piece.data(), static_cast<size_t>(n));
      }
    });
    writer_.reset();
    Hang();
    reader.join();
    return text;
  }
  // Until the pipe is full and the thread cannot go on.
  void FillPipe() {
    writer_->Take(std::string(kPipe + 1, '.') + "\n", Rank::kOrdinary);
    int waiting = 0;
    while (waiting < static_cast<int>(kPipe)) ioctl(ends_[0], FIONREAD, &waiting);
  }

  std::array<int, 2> ends_{};
  std::optional<LogWriter> writer_;
};

TEST_F(LogWriterTest, WritesEverythingInOrderBeforeItEnds) {
  Writer();
  std::string expected;
  for (int i = 0; i < 3000; ++i) {
    const std::string record = fmt::format("record {} {}\n", i, std::string(i % 200, 'x'));
    writer_->Take(record, Rank::kOrdinary);
    expected += record;
  }
  EXPECT_EQ(AllAtTheEnd(), expected);
}

TEST_F(LogWriterTest, KeepsTheRecordsOfThreadsWhole) {
  Writer({.all = 1 << 22, .reserved = 0});
  std::vector<std::thread> threads;
  for (char name = 'a'; name < 'e'; ++name) {
    threads.emplace_back([&, name] {
      for (int i = 0; i < 500; ++i) writer_->Take(std::string(99, name) + "\n", Rank::kOrdinary);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = AllAtTheEnd();
  ASSERT_EQ(text.size(), 4u * 500 * 100);
  for (size_t at = 0; at < text.size(); at += 100) {
    ASSERT_EQ(text.substr(at, 99), std::string(99, text[at]));
  }
}

TEST_F(LogWriterTest, DropsWhatDoesNotFitAndWarningsLast) {
  Writer({.all = 3 * kPipe, .reserved = kPipe});
  FillPipe();
  const std::string record(99, 'i');
  while (writer_->dropped() == 0) writer_->Take(record + "\n", Rank::kOrdinary);
  writer_->Take("a warning\n", Rank::kImportant);
  EXPECT_EQ(writer_->dropped(), 1u);
  while (writer_->dropped() == 1) writer_->Take(std::string(99, 'w') + "\n", Rank::kImportant);
  writer_->Take("never seen" + std::string(99, '.') + "\n", Rank::kImportant);
  const std::string text = AllAtTheEnd();
  EXPECT_THAT(text, HasSubstr("a warning\n"));
  EXPECT_THAT(text, Not(HasSubstr("never seen")));
  EXPECT_THAT(text, HasSubstr("lost 3\n"));
}

TEST_F(LogWriterTest, GivesUpAtTheEndIfNobodyReads) {
  Writer();
  FillPipe();
  writer_->Take("too late\n", Rank::kImportant);
  writer_.reset();  // or this test does not end
  // The thread still waits, and must not meet the next test's pipe.
  std::string text;
  std::array<char, 1000> piece{};
  while (!text.ends_with("too late\n")) {
    text.append(piece.data(), static_cast<size_t>(read(ends_[0], piece.data(), piece.size())));
  }
}

TEST_F(LogWriterTest, WritesWhatIsLeftWhenTheProcessDies) {
  Writer();
  FillPipe();
  writer_->Take("the last record\n", Rank::kOrdinary);
  // The pipe is read too late for the thread, which cannot be stopped here: what it writes as well
  // is written twice.
  std::array<char, kPipe> piece{};
  ASSERT_GT(read(ends_[0], piece.data(), piece.size()), 0);
  writer_->WriteRest();
  EXPECT_THAT(AllAtTheEnd(), HasSubstr("the last record\n"));
}

TEST_F(LogWriterTest, WaitsForADescriptorThatDoesNotBlock) {
  ASSERT_EQ(fcntl(ends_[1], F_SETFL, O_NONBLOCK), 0);
  Writer();
  FillPipe();
  writer_->Take("behind it\n", Rank::kOrdinary);
  const std::string text = AllAtTheEnd();
  EXPECT_THAT(text, StartsWith("..."));
  EXPECT_THAT(text, EndsWith("behind it\n"));
}

TEST_F(LogWriterTest, CountsWhatCannotBeWritten) {
  LogWriter writer(-1, Lost);
  writer.Take("nowhere\n", Rank::kOrdinary);
  while (writer.dropped() == 0) std::this_thread::yield();
  SUCCEED();
}

}  // namespace
}  // namespace fathom
