// fathom completion: how does a shell complete the command line of fathom?
#include "config/completion.h"

#include <fmt/format.h>

#include <cstdio>

#include "cli/command.h"

namespace fathom {

int RunCompletion(std::span<const std::string_view> args) {
  if (AsksForHelp(args)) {
    fmt::print(
        "usage: fathom completion bash|zsh|fish\n\n"
        "Prints the completions of a shell. The Debian package installs them; elsewhere:\n"
        "  bash  source <(fathom completion bash)        in ~/.bashrc\n"
        "  zsh   source <(fathom completion zsh)         in ~/.zshrc, after compinit\n"
        "  fish  fathom completion fish | source         in ~/.config/fish/config.fish\n");
    return kExitFine;
  }
  const auto shell = args.size() == 1 ? ShellOf(args[0]) : std::nullopt;
  if (!shell) {
    fmt::print(stderr, "fathom: completion: {}; name one of {}\n",
               args.empty()       ? "no shell given"
               : args.size() == 1 ? fmt::format("no such shell '{}'", args[0])
                                  : "one shell at a time",
               fmt::join(kShells, ", "));
    return kExitUsage;
  }
  const std::string script = CompletionScript(*shell, PageNames());
  std::fwrite(script.data(), 1, script.size(), stdout);
  return kExitFine;
}

}  // namespace fathom
