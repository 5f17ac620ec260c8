#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "base/version.h"
#include "config/help.h"

namespace fathom {
namespace {

std::string Bold(std::string_view text) { return fmt::format("\\fB{}\\fR", Roff(text)); }
std::string Italic(std::string_view text) { return fmt::format("\\fI{}\\fR", Roff(text)); }

// "fathom(1)"
std::string Reference(std::string_view page) { return Bold(page) + "(1)"; }

std::string PageOf(Command command) { return fmt::format("fathom-{}", NameOf(command)); }

// A sentence as the text after a page's name: "prints the version".
std::string AsPhrase(std::string_view sentence) {
  std::string phrase(sentence.substr(0, sentence.find_last_not_of('.') + 1));
  if (!phrase.empty()) {
    phrase[0] =
        static_cast<char>(phrase[0] >= 'A' && phrase[0] <= 'Z' ? phrase[0] + 32 : phrase[0]);
  }
  return phrase;
}

// Without hyphenation and with ragged lines: names of options are long, and are copied from here.
std::string Head(std::string_view page, std::string_view phrase) {
  std::string title;
  for (const char c : page) title += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return fmt::format(
      ".TH {} 1 \"\" \"Fathom {}\" \"User Commands\"\n.nh\n.ad l\n.SH NAME\n{} \\- {}\n",
      Roff(title), Roff(kVersion), Roff(page), Roff(phrase));
}

void AppendItem(std::string& page, std::string_view tag, std::string_view text) {
  page += fmt::format(".TP\n{}\n{}\n", tag, text);
}

std::string Tag(const Option& option) {
  if (option.type == OptionType::kFlag) {
    return fmt::format("{}, {}", Bold(fmt::format("--{}", option.name)),
                       Bold(fmt::format("--no-{}", option.name)));
  }
  return fmt::format("{} {}", Bold(fmt::format("--{}", option.name)), Italic(option.Placeholder()));
}

// "Default: 8000. Range: 0 to 65535."
std::string Limits(const Option& option) {
  const std::string value = option.secret() ? "" : FormatValue(option, DefaultValue(option));
  std::string text = fmt::format("Default: {}.", value.empty() ? "none" : Bold(value));
  if (const std::string range = FormatRange(option); !range.empty()) {
    text += fmt::format(" {}: {}.", option.choices.empty() ? "Range" : "One of", Roff(range));
  }
  return text;
}

// "Variables: FATHOM_PORT, DYN_HTTP_PORT. Also: --http-port."
std::string OtherNames(const Option& option) {
  std::string text = Roff(option.EnvironmentName());
  bool several = false;
  for (const auto& [variable, unit] : option.dynamo) {
    if (variable.empty()) continue;
    several = true;
    text += fmt::format(", {}", Roff(variable));
    if (!unit.empty()) text += fmt::format(" (in {})", Roff(unit));
  }
  text = fmt::format("{}: {}.", several ? "Variables" : "Variable", text);
  std::string aliases;
  for (const std::string_view alias : option.aliases) {
    if (alias.empty()) continue;
    if (!aliases.empty()) aliases += ", ";
    aliases += Bold(fmt::format("--{}", alias));
  }
  return aliases.empty() ? text : fmt::format("{} Also: {}.", text, aliases);
}

void AppendOptions(std::string& page, Command command) {
  for (size_t i = 0; i < kOptionSections; ++i) {
    const auto section = static_cast<OptionSection>(i);
    bool first = true;
    for (const Option& option : Options()) {
      if (!option.BelongsTo(command) || option.section != section) continue;
      if (std::exchange(first, false)) page += fmt::format(".SS {}\n", Roff(NameOf(section)));
      AppendItem(page, Tag(option), Roff(option.help));
      page += fmt::format(".br\n{}\n.br\n{}\n", Limits(option), OtherNames(option));
    }
  }
}

constexpr std::string_view kHowOptionsAreWritten =
    "Times are written 250ms, 5s, 2m, 1h or as plain seconds; sizes 64MiB, 64MB or as plain bytes. "
    "An option with dots after its value takes several, and can be given again. --option VALUE and "
    "--option=VALUE are the same.";

constexpr std::string_view kWhereOptionsComeFrom =
    "A flag beats FATHOM_*, then DYN_*, then the YAML file, then the default.";

void AppendExitStatus(std::string& page) {
  page += ".SH EXIT STATUS\n";
  AppendItem(page, Bold("0"), "Success.");
  AppendItem(page, Bold("1"), "Findings (doctor, lint), or failure.");
  AppendItem(page, Bold("2"), "The input could not be read (doctor, lint).");
  AppendItem(page, Bold("78"),
             "Wrong usage or configuration, or workers whose block sizes conflict.");
}

void AppendEnvironment(std::string& page) {
  page += ".SH ENVIRONMENT\n";
  AppendItem(page, Bold("FATHOM_*"),
             Roff("Every option can be set by a variable: FATHOM_MAX_IN_FLIGHT is --max-in-flight. "
                  "An unknown name is an error."));
  AppendItem(page, Bold("DYN_*"),
             Roff("Variables of Dynamo that have the meaning of an option; others are ignored."));
  page += fmt::format(".PP\n{} {} shows the source of each value.\n", Roff(kWhereOptionsComeFrom),
                      Bold("fathom serve --print-config"));
}

void AppendFiles(std::string& page) {
  page += ".SH FILES\n";
  AppendItem(page, Italic("/etc/fathom/fathom.yaml"), "Options and workers of the service.");
  AppendItem(page, Italic("/etc/fathom/fathom.env"),
             "Keys of the service, one NAME=VALUE per line.");
  AppendItem(page, Italic("/usr/share/doc/fathom/docs"),
             Roff("The pages that log lines and findings name; \"fathom docs\" prints them too."));
  AppendItem(page, Italic("/usr/share/fathom"), "Prometheus rules and the Grafana dashboard.");
}

// All pages but this one.
void AppendSeeAlso(std::string& page, std::string_view own) {
  std::string pages;
  const auto add = [&](std::string_view name) {
    if (name == own) return;
    if (!pages.empty()) pages += ",\n";
    pages += Reference(name);
  };
  add("fathom");
  for (const Command command : kCommands) add(PageOf(command));
  page += fmt::format(".SH SEE ALSO\n{}\n.PP\n{} lists the pages of the documentation.\n", pages,
                      Bold("fathom docs"));
}

}  // namespace

std::string Roff(std::string_view text) {
  std::string out;
  if (text.starts_with('.') || text.starts_with('\'')) out += "\\&";
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '"':
        out += "\\(dq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string OverviewManual() {
  std::string page = Head("fathom", "KV-cache-aware frontend and router for LLM inference fleets");
  page += fmt::format(".SH SYNOPSIS\n{} {} [{}]...\n", Bold("fathom"), Italic("COMMAND"),
                      Italic("OPTION"));
  page += fmt::format(
      ".SH DESCRIPTION\n{}\n.PP\n{} {} {} lists the options of a command.\n",
      Roff("Fathom serves the OpenAI API in front of vLLM, SGLang and TensorRT-LLM. It follows the "
           "KV events of the engines and sends each request to the worker with the least work left "
           "to do."),
      Bold("fathom"), Italic("COMMAND"), Bold("--help"));
  page += ".SH COMMANDS\n";
  for (const auto& [name, summary] : AllCommands()) AppendItem(page, Bold(name), Roff(summary));
  AppendExitStatus(page);
  AppendEnvironment(page);
  AppendFiles(page);
  AppendSeeAlso(page, "fathom");
  return page;
}

std::string ManualOf(Command command) {
  std::string page = Head(PageOf(command), AsPhrase(SummaryOf(command)));
  const Option* const taker = PositionalOption(command);
  page +=
      fmt::format(".SH SYNOPSIS\n{} [{}]...{}{}\n", Bold(fmt::format("fathom {}", NameOf(command))),
                  Italic("OPTION"), taker != nullptr ? " " : "",
                  taker != nullptr ? Italic(taker->Placeholder()) : std::string());
  page +=
      fmt::format(".SH DESCRIPTION\n{}\n.PP\n{}\n.PP\n{}\n.SH OPTIONS\n", Roff(SummaryOf(command)),
                  Roff(kHowOptionsAreWritten), Roff(kWhereOptionsComeFrom));
  AppendItem(page, Bold("--help"), "Print the options and exit.");
  AppendOptions(page, command);
  AppendExitStatus(page);
  AppendSeeAlso(page, PageOf(command));
  return page;
}

}  // namespace fathom
