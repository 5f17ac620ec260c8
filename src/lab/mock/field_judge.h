// What is wrong with one field of a body, as Pydantic would say it?
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/mock/body_form.h"
#include "lab/mock/engine_words.h"
#include "lab/mock/field_rules.h"

namespace fathom {

// Adds what it finds to a list. Slow: for values of which a quick look did not say that they are
// right.
class FieldJudge {
 public:
  using Place = std::vector<std::string>;

  FieldJudge(MockedEngine engine, std::vector<FieldProblem>& problems)
      : engine_(engine), problems_(problems) {}

  void Judge(FieldForm form, const Place& place, std::string_view raw);
  void Say(std::string_view type, const Place& place, std::string_view message,
           std::string_view raw, std::string context = {}) {
    problems_.push_back({.type = type,
                         .place = place,
                         .message = std::string(message),
                         .input = std::string(raw),
                         .context = std::move(context)});
  }

 private:
  void Text(const Place& place, std::string_view raw) {
    if (!raw.starts_with('"')) Say("string_type", place, "Input should be a valid string", raw);
  }
  void Map(const Place& place, std::string_view raw) {
    if (!raw.starts_with('{')) Say("dict_type", place, "Input should be a valid dictionary", raw);
  }
  void Record(const Place& place, std::string_view raw) {
    if (raw.starts_with('{')) return;
    Say("model_attributes_type", place,
        "Input should be a valid dictionary or object to extract fields from", raw);
  }
  bool List(const Place& place, std::string_view raw) {
    if (raw.starts_with('[')) return true;
    Say("list_type", place, "Input should be a valid list", raw);
    return false;
  }
  void Integer(const Place& place, std::string_view raw);
  void Word64(const Place& place, std::string_view raw);
  void Number(const Place& place, std::string_view raw);
  void Flag(const Place& place, std::string_view raw);
  void Token(const Place& place, std::string_view raw);
  void Elements(FieldForm form, const Place& place, std::string_view raw);
  void Texts(const Place& place, std::string_view raw, FieldForm of);
  void Prompt(const Place& place, std::string_view raw);
  void Chat(const Place& place, std::string_view raw);
  void ChatMessage(const Place& place, std::string_view raw);
  void Dialogue(const Place& place, std::string_view raw);
  void DialogueContent(const Place& place, std::string_view raw);
  void SglangContent(const Place& place, std::string_view raw);
  void Tools(const Place& place, std::string_view raw);
  void Schemas(const Place& place, std::string_view raw);
  void Stream(const Place& place, std::string_view raw);
  void Name(const Place& place, std::string_view raw);
  void Positive(const Place& place, std::string_view raw);
  void Content(const Place& place, std::string_view raw, bool null);

  const MockedEngine engine_;
  std::vector<FieldProblem>& problems_;
};

// For the places of parts.
FieldJudge::Place Below(const FieldJudge::Place& place, std::string step);
BodyMembers MembersOf(std::string_view object);

bool IsJsonNumber(std::string_view raw);
bool IsWholeNumber(std::string_view raw);  // of one
double ToDouble(std::string_view raw);

}  // namespace fathom
