// The names that a template uses, each once.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/jinja/method.h"
#include "text/jinja/syntax.h"

namespace fathom {

class NameTable {
 public:
  NameId Intern(std::string_view name) {
    const auto [found, added] =
        ids_.try_emplace(std::string(name), static_cast<NameId>(names_.size()));
    if (added) names_.emplace_back(name);
    return found->second;
  }

  // Stays where it is as long as the table lives.
  const MethodName* Methods(std::string_view name) {
    std::unique_ptr<const MethodName>& methods = methods_[std::string(name)];
    if (methods == nullptr) methods = std::make_unique<const MethodName>(FindMethods(name));
    return methods.get();
  }

  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, NameId> ids_;
  std::unordered_map<std::string, std::unique_ptr<const MethodName>> methods_;
};

}  // namespace fathom
