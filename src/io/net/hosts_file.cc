#include "io/net/hosts_file.h"

#include <algorithm>

#include "io/net/host_name.h"

namespace fathom {
namespace {

constexpr std::string_view kBlanks = " \t\r\v\f";

// Takes the next word from the front of the line.
std::string_view NextWord(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const size_t end = std::min(line.find_first_of(kBlanks), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

std::string KeyOf(std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  return LowerHostName(name);
}

void AddLine(std::string_view line, HostsFile::Table& table) {
  line = line.substr(0, line.find('#'));
  if (line.size() > HostsFile::kMaxLine) return;
  const auto address = Address::Numeric(NextWord(line), 0);
  if (!address) return;
  for (std::string_view name = NextWord(line); !name.empty(); name = NextWord(line)) {
    if (!IsHostName(name)) continue;
    std::vector<Address>& addresses = table[KeyOf(name)];
    if (addresses.size() >= HostsFile::kMaxAddresses) continue;
    if (std::ranges::find(addresses, *address) == addresses.end()) addresses.push_back(*address);
  }
}

}  // namespace

HostsFile::Table HostsFile::Parse(std::string_view text) {
  Table table;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    AddLine(text.substr(0, end), table);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return table;
}

bool HostsFile::Refresh() {
  if (!file_.Refresh()) return false;
  table_ = Parse(file_.text());
  return true;
}

const std::vector<Address>* HostsFile::Find(std::string_view name) const {
  const auto found = table_.find(KeyOf(name));
  return found == table_.end() ? nullptr : &found->second;
}

}  // namespace fathom
