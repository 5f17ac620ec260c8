#include <charconv>
#include <utility>

#include "text/jinja/expression_height.h"
#include "text/jinja/expression_parser.h"
#include "text/jinja/filter.h"
#include "text/jinja/predicate.h"

namespace fathom {
namespace {

// What the environment has in Python and not here: without this a template that uses it would only
// find it undefined.
bool IsUnsupportedGlobal(std::string_view name) {
  return name == "joiner" || name == "cycler" || name == "lipsum" || name == "self" ||
         name == "super";
}

std::optional<TemplateValue> ConstantOf(std::string_view name) {
  if (name == "true" || name == "True") return TemplateValue(true);
  if (name == "false" || name == "False") return TemplateValue(false);
  if (name == "none" || name == "None") return TemplateValue(nullptr);
  return std::nullopt;
}

// The text that is written there; nullptr: anything else.
const std::string* WrittenText(const Expression& expression) {
  const Literal* literal = std::get_if<Literal>(&expression.node);
  return literal == nullptr ? nullptr : literal->value.text();
}

// Whether the filters and tests that arguments name are known.
Result<> CheckNamed(const TokenStream& tokens, const Filter& filter,
                    const ArgumentList& arguments) {
  const NamesWhat what = NamedByArguments(filter);
  if (what == NamesWhat::kNothing) return {};
  if (arguments.more_positional != nullptr || arguments.more_keywords != nullptr) {
    return tokens.Wrong("filter '{}' with stars is not supported", filter.name);
  }
  const size_t at = what == NamesWhat::kTestAfterAttribute ? 1 : 0;
  if (arguments.positional.size() <= at) return {};
  const std::string* name = WrittenText(*arguments.positional[at]);
  if (name == nullptr)
    return tokens.Wrong("filter '{}' by a name that is not written out", filter.name);
  if (what != NamesWhat::kFilter) {
    return FindPredicate(*name) != nullptr ? Result<>()
                                           : tokens.Wrong("test '{}' is not supported", *name);
  }
  const Filter* named = FindFilter(*name);
  const bool known = named != nullptr && NamedByArguments(*named) == NamesWhat::kNothing;
  return known ? Result<>() : tokens.Wrong("filter '{}' is not supported by map", *name);
}

}  // namespace

void ExpressionParser::NoteUnknown(std::unexpected<Error> unknown) {
  if (branches_ == 0 && !unknown_) unknown_ = std::move(unknown).error();
}

Result<ExpressionPtr> ExpressionParser::ParsePrimary() {
  const uint32_t line = tokens_.line();
  switch (tokens_.current().kind) {
    case TokenKind::kName:
      return ParseNameOrConstant();
    case TokenKind::kString: {
      std::string text = tokens_.Take().text;
      while (tokens_.Is(TokenKind::kString)) text += tokens_.Take().text;
      return Make(Literal{TemplateValue(std::move(text))}, line, 0);
    }
    case TokenKind::kInteger: {
      const std::string digits = tokens_.Take().text;
      int64_t value = 0;
      const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (end.ec != std::errc()) return tokens_.Wrong("a number that is too large");
      return Make(Literal{TemplateValue(value)}, line, 0);
    }
    case TokenKind::kFloat: {
      const std::string digits = tokens_.Take().text;
      double value = 0;
      const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (end.ec != std::errc()) return tokens_.Wrong("a number that is too large");
      return Make(Literal{TemplateValue(value)}, line, 0);
    }
    default:
      break;
  }
  if (tokens_.IsOperator("(")) return ParseParentheses();
  if (tokens_.IsOperator("[")) return ParseList();
  if (tokens_.IsOperator("{")) return ParseDict();
  return tokens_.Wrong("an expression is missing");
}

Result<ExpressionPtr> ExpressionParser::ParseNameOrConstant() {
  const uint32_t line = tokens_.line();
  if (IsUnsupportedGlobal(tokens_.current().text)) {
    return tokens_.Wrong("'{}' is not supported", tokens_.current().text);
  }
  const Token name = tokens_.Take();
  if (std::optional<TemplateValue> constant = ConstantOf(name.text)) {
    return Make(Literal{*std::move(constant)}, line, 0);
  }
  return Make(NameUse{tokens_.names().Intern(name.text), {}}, line, 0);
}

Result<ExpressionPtr> ExpressionParser::ParseParentheses() {
  const uint32_t line = tokens_.Take().line;
  if (tokens_.SkipOperator(")")) return Make(SequenceLiteral{{}, SequenceKind::kTuple}, line, 0);
  TRY(ExpressionPtr value, ParseTuple(true));
  TRY_VOID(tokens_.ExpectOperator(")"));
  return value;
}

Result<ExpressionPtr> ExpressionParser::ParseList() {
  const uint32_t line = tokens_.Take().line;
  SequenceLiteral list{{}, SequenceKind::kList};
  while (!tokens_.IsOperator("]")) {
    TRY(ExpressionPtr item, Parse());
    list.items.push_back(std::move(item));
    if (!tokens_.SkipOperator(",")) break;
  }
  TRY_VOID(tokens_.ExpectOperator("]"));
  const uint32_t height = HeightOf(list.items);
  return Make(std::move(list), line, height);
}

Result<ExpressionPtr> ExpressionParser::ParseDict() {
  const uint32_t line = tokens_.Take().line;
  DictLiteral dict;
  uint32_t height = 0;
  while (!tokens_.IsOperator("}")) {
    TRY(ExpressionPtr key, Parse());
    const Literal* const written = std::get_if<Literal>(&key->node);
    if (written != nullptr && !DictKey(written->value)) {
      return tokens_.Wrong("a dict with a key of this kind is not supported");
    }
    TRY_VOID(tokens_.ExpectOperator(":"));
    TRY(ExpressionPtr value, Parse());
    height = std::max(height, HeightOf(key, value));
    dict.members.emplace_back(std::move(key), std::move(value));
    if (!tokens_.SkipOperator(",")) break;
  }
  TRY_VOID(tokens_.ExpectOperator("}"));
  return Make(std::move(dict), line, height);
}

Result<ExpressionPtr> ExpressionParser::ParsePostfix(ExpressionPtr value) {
  while (true) {
    if (tokens_.IsOperator(".")) {
      TRY(value, ParseDot(std::move(value)));
    } else if (tokens_.IsOperator("[")) {
      TRY(value, ParseBrackets(std::move(value)));
    } else if (tokens_.IsOperator("(")) {
      TRY(value, ParseCall(std::move(value)));
    } else {
      return value;
    }
  }
}

Result<ExpressionPtr> ExpressionParser::ParseFiltersAndTests(ExpressionPtr value) {
  while (true) {
    if (tokens_.IsOperator("|")) {
      tokens_.Take();
      TRY(value, ParseFilter(std::move(value)));
    } else if (tokens_.IsName("is")) {
      TRY(value, ParseTest(std::move(value)));
    } else if (tokens_.IsOperator("(")) {
      TRY(value, ParseCall(std::move(value)));
    } else {
      return value;
    }
  }
}

Result<ExpressionPtr> ExpressionParser::ParseDot(ExpressionPtr value) {
  const uint32_t line = tokens_.Take().line;
  const uint32_t height = HeightOf(value);
  if (tokens_.Is(TokenKind::kInteger)) {
    TRY(ExpressionPtr key, ParsePrimary());
    return Make(Item{std::move(value), std::move(key), nullptr}, line, height);
  }
  TRY(const std::string name, tokens_.ExpectName());
  if (tokens_.IsOperator("(") && IsUnsupportedMethod(name)) {
    NoteUnknown(tokens_.Wrong("method '{}' is not supported", name));
  }
  return Make(Attribute{std::move(value), tokens_.names().Methods(name)}, line, height);
}

Result<ExpressionPtr> ExpressionParser::ParseBrackets(ExpressionPtr value) {
  const uint32_t line = tokens_.Take().line;
  ExpressionPtr bounds[3];
  size_t colons = 0;
  while (!tokens_.IsOperator("]")) {
    if (tokens_.SkipOperator(":")) {
      if (++colons > 2) return tokens_.Wrong("a slice has at most three parts");
      continue;
    }
    if (bounds[colons] != nullptr) return tokens_.Wrong("']' is missing");
    TRY(bounds[colons], colons == 0 ? ParseTuple(true) : Parse());
  }
  tokens_.Take();
  const uint32_t height = std::max(HeightOf(value), HeightOf(bounds[0], bounds[1], bounds[2]));
  if (colons > 0) {
    return Make(
        Slice{std::move(value), std::move(bounds[0]), std::move(bounds[1]), std::move(bounds[2])},
        line, height);
  }
  if (bounds[0] == nullptr) return tokens_.Wrong("an expression is missing");
  const std::string* text = WrittenText(*bounds[0]);
  const MethodName* name = text == nullptr ? nullptr : tokens_.names().Methods(*text);
  return Make(Item{std::move(value), std::move(bounds[0]), name}, line, height);
}

Result<ExpressionPtr> ExpressionParser::ParseCall(ExpressionPtr callee) {
  const uint32_t line = tokens_.line();
  TRY(ArgumentList arguments, ParseArguments());
  const uint32_t height = std::max(HeightOf(callee), HeightOf(arguments));
  return Make(Call{std::move(callee), std::move(arguments)}, line, height);
}

Result<ArgumentList> ExpressionParser::ParseArguments() {
  TRY_VOID(tokens_.ExpectOperator("("));
  ArgumentList list;
  while (!tokens_.IsOperator(")")) {
    TRY_VOID(ParseArgument(list));
    if (!tokens_.SkipOperator(",")) break;
  }
  TRY_VOID(tokens_.ExpectOperator(")"));
  return list;
}

Result<> ExpressionParser::ParseArgument(ArgumentList& list) {
  const bool named = tokens_.Is(TokenKind::kName) && tokens_.next().kind == TokenKind::kOperator &&
                     tokens_.next().text == "=";
  const bool star = tokens_.IsOperator("*");
  const bool any_star = list.more_positional != nullptr || list.more_keywords != nullptr;
  const bool out_of_order = named                      ? list.more_keywords != nullptr
                            : star                     ? any_star
                            : tokens_.IsOperator("**") ? list.more_keywords != nullptr
                                                       : any_star || !list.keywords.empty();
  if (out_of_order) return tokens_.Wrong("arguments in an invalid order");
  if (star || tokens_.IsOperator("**")) {
    tokens_.Take();
    TRY((star ? list.more_positional : list.more_keywords), Parse());
    return {};
  }
  if (!named) {
    TRY(ExpressionPtr value, Parse());
    list.positional.push_back(std::move(value));
    return {};
  }
  std::string name = tokens_.Take().text;
  tokens_.Take();
  TRY(ExpressionPtr value, Parse());
  list.keywords.emplace_back(std::move(name), std::move(value));
  return {};
}

Result<ExpressionPtr> ExpressionParser::ParseFilters(ExpressionPtr input) {
  while (tokens_.SkipOperator("|")) {
    TRY(input, ParseFilter(std::move(input)));
  }
  return input;
}

Result<ExpressionPtr> ExpressionParser::ParseFilterChain() {
  TRY(ExpressionPtr first, ParseFilter(nullptr));
  return ParseFilters(std::move(first));
}

Result<ExpressionPtr> ExpressionParser::ParseFilter(ExpressionPtr input) {
  const uint32_t line = tokens_.line();
  TRY(const std::string name, tokens_.ExpectName());
  const Filter* filter = FindFilter(name);
  if (filter == nullptr) NoteUnknown(tokens_.Wrong("filter '{}' is not supported", name));
  ArgumentList arguments;
  if (tokens_.IsOperator("(")) {
    TRY(arguments, ParseArguments());
  }
  if (filter != nullptr) {
    const Result<> named = CheckNamed(tokens_, *filter, arguments);
    if (!named) NoteUnknown(std::unexpected(named.error()));
  }
  const uint32_t height = std::max(HeightOf(input), HeightOf(arguments));
  std::string unknown = filter == nullptr ? name : "";
  return Make(FilterUse{std::move(input), filter, std::move(arguments), std::move(unknown)}, line,
              height);
}

Result<ExpressionPtr> ExpressionParser::ParseTest(ExpressionPtr input) {
  const uint32_t line = tokens_.Take().line;
  const bool negated = tokens_.SkipName("not");
  TRY(const std::string name, tokens_.ExpectName());
  const Predicate* test = FindPredicate(name);
  if (test == nullptr) NoteUnknown(tokens_.Wrong("test '{}' is not supported", name));
  ArgumentList arguments;
  const bool keyword = tokens_.IsName("else") || tokens_.IsName("or") || tokens_.IsName("and");
  const bool name_next = tokens_.Is(TokenKind::kName) && !keyword;
  const bool literal_next = tokens_.Is(TokenKind::kString) || tokens_.Is(TokenKind::kInteger) ||
                            tokens_.Is(TokenKind::kFloat) || tokens_.IsOperator("[") ||
                            tokens_.IsOperator("{");
  if (tokens_.IsOperator("(")) {
    TRY(arguments, ParseArguments());
  } else if (tokens_.IsName("is")) {
    return tokens_.Wrong("tests cannot follow each other");
  } else if (name_next || literal_next) {
    TRY(ExpressionPtr value, ParsePrimary());
    TRY(value, ParsePostfix(std::move(value)));
    arguments.positional.push_back(std::move(value));
  }
  const uint32_t height = std::max(HeightOf(input), HeightOf(arguments));
  std::string unknown = test == nullptr ? name : "";
  TRY(ExpressionPtr use,
      Make(TestUse{std::move(input), test, std::move(arguments), std::move(unknown)}, line,
           height));
  if (!negated) return use;
  const uint32_t above = HeightOf(use);
  return Make(Unary{UnaryOperator::kNot, std::move(use)}, line, above);
}

Result<Target> ExpressionParser::ParseTarget(bool attributes) {
  const Descent descent(depth_);
  TRY_VOID(CheckDepth(depth_, tokens_.line()));
  const uint32_t line = tokens_.line();
  TRY(Target first, ParseOneTarget(attributes));
  if (!tokens_.IsOperator(",")) return first;
  Target tuple{.is_tuple = true, .line = line};
  tuple.parts.push_back(std::move(first));
  while (tokens_.SkipOperator(",")) {
    if (!tokens_.Is(TokenKind::kName) && !tokens_.IsOperator("(")) break;
    if (tokens_.IsName("in")) break;
    TRY(Target part, ParseOneTarget(attributes));
    tuple.parts.push_back(std::move(part));
  }
  return tuple;
}

Result<Target> ExpressionParser::ParseOneTarget(bool attributes) {
  const uint32_t line = tokens_.line();
  if (tokens_.SkipOperator("(")) {
    TRY(Target inner, ParseTarget(attributes));
    TRY_VOID(tokens_.ExpectOperator(")"));
    return inner;
  }
  TRY(const std::string name, tokens_.ExpectName());
  if (ConstantOf(name)) return tokens_.Wrong("'{}' cannot be set", name);
  Target target{.name = tokens_.names().Intern(name), .line = line};
  if (!attributes || !tokens_.SkipOperator(".")) return target;
  TRY(target.attribute, tokens_.ExpectName());
  return target;
}

}  // namespace fathom
