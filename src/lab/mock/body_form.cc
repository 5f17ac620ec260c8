#include "lab/mock/body_form.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "lab/mock/field_check.h"
#include "lab/mock/field_judge.h"
#include "lab/mock/python_words.h"

namespace fathom {
namespace {

constexpr size_t kUsualMembers = 16;

// Why this is no JSON object: Python could not read it, or it is something else.
std::vector<FieldProblem> ProblemOf(std::string_view body) {
  const size_t begin = body.find_first_not_of(" \t\r\n");
  const std::string_view value =
      begin == body.npos ? std::string_view()
                         : body.substr(begin, body.find_last_not_of(" \t\r\n") - begin + 1);
  if (body.empty() || value == "null") {
    return {{.type = "missing", .place = {}, .message = "Field required", .input = "null"}};
  }
  const PythonJsonError error = ExplainJson(body);
  if (error.message.empty()) {
    return {{.type = "model_attributes_type",
             .place = {},
             .message = "Input should be a valid dictionary or object to extract fields from",
             .input = std::string(value)}};
  }
  return {{.type = "json_invalid",
           .place = {fmt::format("{}", error.position)},
           .message = "JSON decode error",
           .input = {},
           .context = fmt::format("{{'error': {}}}", PythonText(error.message))}};
}

// A prompt or messages; vLLM tells what is wrong with it as either of the two.
std::vector<FieldProblem> CheckVllmTokenize(const BodyMembers& members, std::string_view body) {
  static const FieldRules text({"model:t? prompt:t! add_special_tokens:b return_token_strs:b?"},
                               true);
  static const FieldRules chat(
      {"model:t? messages:c! add_generation_prompt:b return_token_strs:b? "
       "continue_final_message:b add_special_tokens:b chat_template:t? chat_template_kwargs:o? "
       "media_io_kwargs:o? mm_processor_kwargs:o? tools:k?"},
      true);
  std::vector<FieldProblem> problems = CheckFields(text, MockedEngine::kVllm, members, body);
  if (problems.empty()) return problems;
  std::vector<FieldProblem> others = CheckFields(chat, MockedEngine::kVllm, members, body);
  if (others.empty()) return others;
  std::ranges::move(others, std::back_inserter(problems));
  return problems;
}

}  // namespace

std::optional<double> NumberIn(std::string_view raw) {
  if (raw == "true") return 1;
  if (raw == "false") return 0;
  if (raw.size() > 1 && raw.front() == '"') raw = raw.substr(1, raw.size() - 2);
  if (raw.empty() || raw == "null") return std::nullopt;
  return ToDouble(raw);
}

bool FlagIn(std::string_view raw) {
  const bool text = raw.size() > 2 && raw.front() == '"';
  const std::string_view word = text ? raw.substr(1, raw.size() - 2) : raw;
  if (word.empty()) return false;
  return std::string_view("tTyY1").contains(word[0]) || EqualsIgnoreCase(word, "on");
}

std::string_view MemberNamed(const BodyMembers& members, std::string_view name) {
  for (size_t i = members.size(); i-- > 0;) {
    const std::string_view key = members[i].key;
    if (key == name || (key.contains('\\') && JsonKeyIs(key, name))) return members[i].value;
  }
  return {};
}

std::string_view ValueNamed(const BodyMembers& members, std::string_view name) {
  const std::string_view value = MemberNamed(members, name);
  return value == "null" ? std::string_view() : value;
}

// Up to the first semicolon, without a blank before it: so do the engines.
bool IsJsonType(std::string_view content_type) {
  return EqualsIgnoreCase(content_type.substr(0, content_type.find(';')), "application/json");
}

std::expected<BodyMembers, Answer> ReadMembers(MockedEngine engine, MockRoute route,
                                               std::string_view body) {
  BodyMembers members;
  members.reserve(kUsualMembers);
  JsonScanner scanner(body);
  for (;;) {
    const auto member = scanner.Next();
    if (!member) return std::unexpected(FormAnswer(engine, route, ProblemOf(body)));
    if (!*member) return members;
    members.push_back(**member);
  }
}

std::optional<Answer> CheckForm(MockedEngine engine, MockRoute route, const BodyMembers& members,
                                std::string_view body) {
  const bool tokenize = route == MockRoute::kTokenize && engine == MockedEngine::kVllm;
  const std::vector<FieldProblem> problems =
      tokenize ? CheckVllmTokenize(members, body)
               : CheckFields(RulesFor(engine, route), engine, members, body);
  if (problems.empty()) return std::nullopt;
  return FormAnswer(engine, route, problems);
}

}  // namespace fathom
