#include <fmt/format.h>

#include <algorithm>

#include "config/assignment.h"

namespace fathom {
namespace {

class FlagReader {
 public:
  FlagReader(Command command, std::span<const std::string_view> args, RenamedOptionTable renamed)
      : command_(command), args_(args), renamed_(renamed) {}

  Result<std::vector<Assignment>> Read() {
    while (next_ < args_.size()) TRY_VOID(ReadOne(args_[next_++]));
    return std::move(found_);
  }

 private:
  Result<> ReadOne(std::string_view arg) {
    if (!arg.starts_with("--")) {
      // "-" by itself is standard input.
      const bool flag = arg.size() > 1 && arg.starts_with('-');
      const Option* const taker = flag ? nullptr : PositionalOption(command_);
      return taker != nullptr ? Add({taker}, taker->name, arg) : Stray(arg);
    }
    const size_t equals = std::min(arg.find('='), arg.size());
    const std::string_view name = arg.substr(2, equals - 2);
    std::optional<std::string_view> value;
    if (equals < arg.size()) value = arg.substr(equals + 1);

    if (const NamedOption named = Find(name); named.option) return ReadValue(named, name, value);
    if (name.starts_with("no-")) {
      if (const NamedOption named = Find(name.substr(3)); named.option) {
        return ReadNegation(named, name, value);
      }
    }
    return NoSuchOption(name);
  }

  NamedOption Find(std::string_view name) const {
    return FindOptionOrFormer(command_, name, renamed_);
  }

  Result<> ReadValue(const NamedOption& named, std::string_view name,
                     std::optional<std::string_view> value) {
    const Option& option = *named.option;
    if (option.type == OptionType::kFlag) return Add(named, name, value.value_or("true"));
    if (value) return Add(named, name, *value);
    if (!HasValueNext(option)) return MissingValue(option, name);
    do {
      TRY_VOID(Add(named, name, args_[next_++]));
    } while (option.list() && HasValueNext(option));  // --worker-urls http://a http://b
    return {};
  }

  Result<> ReadNegation(const NamedOption& named, std::string_view name,
                        std::optional<std::string_view> value) {
    const Option& option = *named.option;
    const Origin origin = Origin::Flag(name);
    if (option.type != OptionType::kFlag) {
      return std::unexpected(
          origin.Refuse(fmt::format("no such option; --{} is not a switch", option.name)));
    }
    if (value) {
      return std::unexpected(origin.Refuse(
          fmt::format("takes no value; write --{} or --no-{}", option.name, option.name)));
    }
    return Add(named, name, "false");
  }

  // "-5" is a value, so that the bounds can refuse it, and "-" by itself is standard input; any
  // other dash starts an option.
  bool HasValueNext(const Option& option) const {
    if (next_ == args_.size()) return false;
    const std::string_view arg = args_[next_];
    if (arg == "-") return option.type == OptionType::kFiles;
    return !arg.starts_with('-') || (arg.size() > 1 && arg[1] >= '0' && arg[1] <= '9');
  }

  Result<> MissingValue(const Option& option, std::string_view name) const {
    std::string problem = fmt::format("needs a value: --{} {}", name, option.Placeholder());
    if (next_ < args_.size()) {
      problem += fmt::format(" (--{}=VALUE if it starts with a dash)", name);
    }
    return std::unexpected(Origin::Flag(name).Refuse(problem));
  }

  Result<> Stray(std::string_view arg) const {
    if (arg.size() > 1 && arg.starts_with('-')) {
      return Fail(Blame::kCaller, "{}: no such option; options are written --name", Shown(arg));
    }
    if (arg.find("://") != std::string_view::npos && FindOption(command_, "worker-urls")) {
      return Fail(Blame::kCaller, "'{}': unexpected argument; did you mean --worker-urls {}?",
                  Shown(arg), Shown(arg));
    }
    return Fail(Blame::kCaller, "'{}': unexpected argument; fathom {} takes only options",
                Shown(arg), NameOf(command_));
  }

  Result<> NoSuchOption(std::string_view name) const {
    const Origin origin = Origin::Flag(name);
    const auto near = NearestOption(command_, name);
    if (near && near->starts_with(name)) {
      return std::unexpected(
          origin.Refuse(fmt::format("no such option; did you mean --{}?", *near)));
    }
    if (const auto other = CommandWith(name)) {
      return std::unexpected(origin.Refuse(
          fmt::format("not an option of {}; it belongs to {}", NameOf(command_), NameOf(*other))));
    }
    if (near) {
      return std::unexpected(
          origin.Refuse(fmt::format("no such option; did you mean --{}?", *near)));
    }
    return std::unexpected(origin.Refuse(
        fmt::format("no such option; fathom {} --help lists them", NameOf(command_))));
  }

  Result<> Add(const NamedOption& named, std::string_view name, std::string_view text) {
    const Option& option = *named.option;
    Assignment given{&option, std::string(text), Origin::Flag(name), {}, named.renamed};
    const auto same = std::ranges::find(found_, &option, &Assignment::option);
    if (same == found_.end()) {
      found_.push_back(std::move(given));
    } else if (same->renamed != named.renamed) {
      return std::unexpected(named.renamed != nullptr
                                 ? BothNames(given.origin, same->origin.name())
                                 : BothNames(same->origin, given.origin.name()));
    } else if (option.list()) {
      same->text.append(option.type == OptionType::kFiles ? "\n" : " ").append(text);
    } else {
      *same = std::move(given);
    }
    return {};
  }

  const Command command_;
  const std::span<const std::string_view> args_;
  const RenamedOptionTable renamed_;
  size_t next_ = 0;
  std::vector<Assignment> found_;
};

}  // namespace

Error BothNames(const Origin& former, std::string_view now) {
  return former.Refuse(
      fmt::format("former name of {}, which is set as well; remove {}", now, former.name()));
}

Result<std::vector<Assignment>> ReadFlags(Command command, std::span<const std::string_view> args,
                                          RenamedOptionTable renamed) {
  return FlagReader(command, args, renamed).Read();
}

}  // namespace fathom
