#include "text/jinja/interpreter.h"

#include <optional>
#include <string_view>
#include <utility>

namespace fathom {
namespace {

std::optional<Builtin> BuiltinOf(std::string_view name) {
  if (name == "range") return Builtin::kRange;
  if (name == "namespace") return Builtin::kNamespace;
  if (name == "dict") return Builtin::kDict;
  if (name == "raise_exception") return Builtin::kRaiseException;
  if (name == "strftime_now") return Builtin::kStrftimeNow;
  return std::nullopt;
}

TemplateValue GlobalOf(const TemplateDict& globals, std::string_view name) {
  if (const TemplateValue* given = FindMember(globals, name)) return *given;
  const std::optional<Builtin> builtin = BuiltinOf(name);
  if (!builtin) return {};
  auto callable = std::make_shared<TemplateCallable>();
  callable->builtin = builtin;
  return TemplateValue(std::shared_ptr<const TemplateCallable>(std::move(callable)));
}

}  // namespace

Interpreter::Interpreter(const NameTable& names, const TemplateDict& globals,
                         const RenderOptions& options)
    : names_(names), budget_(options.limits), now_(options.now) {
  globals_.reserve(names.names().size());
  for (const std::string& name : names.names()) globals_.push_back(GlobalOf(globals, name));
}

// Namespaces can hold each other: emptied, they can go.
Interpreter::~Interpreter() {
  for (const auto& name_space : namespaces_) name_space->attributes.clear();
}

std::expected<std::string, RenderFailure> Interpreter::Run(const Function& root) {
  std::string out;
  out_ = &out;
  Activation& activation = activations_.emplace_back();
  activation.slots.resize(root.slots);
  activation.height = root.height;
  activation_ = &activation;
  running_ = 1;
  Enter(root.entry);
  const Flow flow = Run(root.body);
  if (flow == Flow::kFailed || !Step()) return std::unexpected(Failure());
  return out;
}

RenderFailure Interpreter::Failure() {
  using Cause = RenderFailure::Cause;
  const Cause cause = budget_.overdrawn() ? Cause::kOverdrawn
                      : refused_          ? Cause::kRefused
                                          : Cause::kFailed;
  return {std::move(error_), cause};
}

TemplateValue& Interpreter::At(const SourcePlace& place) {
  if (place.global()) return globals_[place.index];
  Activation* activation = activation_;
  for (uint32_t i = 0; i < place.hops; ++i) activation = &activations_[activation->outer];
  return activation->slots[place.index];
}

bool Interpreter::Fails(uint32_t line, Error error) {
  error_ = line == 0 ? std::move(error) : std::move(error).In(fmt::format("line {}", line));
  return false;
}

Interpreter::Borrowed Interpreter::Take(uint32_t line, Result<TemplateValue> result,
                                        TemplateValue& scratch) {
  if (!result) {
    Fails(line, std::move(result).error());
    return nullptr;
  }
  scratch = *std::move(result);
  return &scratch;
}

Error Interpreter::UndefinedError(const Expression& expression) const {
  std::string_view name;
  if (const NameUse* use = std::get_if<NameUse>(&expression.node)) {
    name = names_.names()[use->name];
  } else if (const Attribute* attribute = std::get_if<Attribute>(&expression.node)) {
    name = attribute->name->name;
  } else if (const Item* item = std::get_if<Item>(&expression.node)) {
    if (item->name != nullptr) name = item->name->name;
  }
  if (name.empty()) return {Blame::kCaller, "something is undefined"};
  return {Blame::kCaller, fmt::format("'{}' is undefined", name)};
}

}  // namespace fathom
