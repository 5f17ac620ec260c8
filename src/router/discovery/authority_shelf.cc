#include "router/discovery/authority_shelf.h"

#include <fmt/format.h>
#include <sys/stat.h>

namespace fathom {
namespace {

std::string StampOf(const std::string& ca_file) {
  struct stat status{};
  if (ca_file.empty() || ::stat(ca_file.c_str(), &status) != 0) return "";
  return fmt::format("{}.{} {} {}", status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_size,
                     status.st_ino);
}

}  // namespace

Result<std::shared_ptr<const TlsClientContext>> AuthorityShelf::Of(const std::string& ca_file) {
  std::string stamp = StampOf(ca_file);
  const std::lock_guard lock(mutex_);
  if (const auto known = read_.find(ca_file); known != read_.end()) {
    auto context = known->second.context.lock();
    if (context != nullptr && known->second.stamp == stamp) return context;
  }
  TRY(std::shared_ptr<const TlsClientContext> context, TlsClientContext::Create(ca_file));
  if (read_.size() >= kMost) {
    std::erase_if(read_, [](const auto& entry) { return entry.second.context.expired(); });
  }
  if (read_.size() < kMost || read_.contains(ca_file)) {
    read_[ca_file] = {std::move(stamp), context};
  }
  return context;
}

}  // namespace fathom
