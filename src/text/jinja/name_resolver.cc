#include "text/jinja/name_resolver.h"

#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "text/jinja/syntax_walk.h"

namespace fathom {
namespace {

// A scope: which names it knows, and from where they begin.
class Scope {
 public:
  Scope(Function& function, const Scope* parent) : function_(function), parent_(parent) {}

  // A name is read. One that nobody has set so far is a global.
  void Load(NameId name) {
    if (!Knows(name)) entries_.try_emplace(name);
  }

  // A name is set; `certain`: whenever the scope runs.
  void Store(NameId name, bool certain) {
    const auto found = entries_.find(name);
    if (found != entries_.end() && found->second) return;
    const bool read_before = found != entries_.end();
    const bool known_outside = parent_ != nullptr && parent_->Knows(name);
    const uint32_t slot = function_.slots++;
    std::optional<SourcePlace> from;
    if (known_outside || read_before || !certain) from = Outside(name);
    entries_[name] = slot;
    start_.emplace_back(slot, from);
  }

  // A name that gets its value in another way.
  uint32_t Declare(NameId name) {
    const uint32_t slot = function_.slots++;
    entries_[name] = slot;
    return slot;
  }

  SourcePlace Find(NameId name) const {
    uint32_t hops = 0;
    for (const Scope* scope = this; scope != nullptr; scope = scope->parent_) {
      const auto found = scope->entries_.find(name);
      if (found != scope->entries_.end()) {
        return found->second ? SourcePlace{hops, *found->second}
                             : SourcePlace{SourcePlace::kGlobal, name};
      }
      if (scope->parent_ != nullptr && &scope->parent_->function_ != &scope->function_) ++hops;
    }
    return {SourcePlace::kGlobal, name};
  }

  Function& function() const { return function_; }
  ScopeEntry TakeStart() { return std::move(start_); }

 private:
  bool Knows(NameId name) const {
    return entries_.contains(name) || (parent_ != nullptr && parent_->Knows(name));
  }

  // Where the name is around this scope. Scopes of another function are entered by a call: the
  // place is seen from inside.
  SourcePlace Outside(NameId name) const {
    if (parent_ == nullptr) return {SourcePlace::kGlobal, name};
    SourcePlace place = parent_->Find(name);
    if (!place.global() && &parent_->function_ != &function_) ++place.hops;
    return place;
  }

  Function& function_;
  const Scope* parent_;
  std::unordered_map<NameId, std::optional<uint32_t>> entries_;  // nothing: a global
  ScopeEntry start_;
};

// Whether a name is read anywhere in it, in whichever scope.
bool Uses(const Expression& expression, NameId name) {
  const NameUse* use = std::get_if<NameUse>(&expression.node);
  bool found = use != nullptr && use->name == name;
  ForEachChild(expression, [&](const Expression& child) { found = found || Uses(child, name); });
  return found;
}

bool Uses(const Block& block, NameId name) {
  bool found = false;
  for (const Statement& statement : block) {
    ForEachPart(
        statement, [&](const Expression& expression) { found = found || Uses(expression, name); },
        [&](const Block& inner) { found = found || Uses(inner, name); });
  }
  return found;
}

// First pass over a scope: what is read and set in it, in order. Inner scopes are left out, but for
// what runs outside of them.
class Collector {
 public:
  explicit Collector(Scope& scope) : scope_(scope) {}

  void Visit(Block& block) {
    for (Statement& statement : block) std::visit(*this, statement.node);
  }
  void Visit(ExpressionPtr& expression) {
    if (expression != nullptr) Visit(*expression);
  }
  void Visit(Expression& expression) {
    if (const NameUse* use = std::get_if<NameUse>(&expression.node)) scope_.Load(use->name);
    ForEachChild(expression, [this](Expression& child) { Visit(child); });
  }
  void Visit(Target& target) {
    if (target.is_tuple) {
      for (Target& part : target.parts) Visit(part);
    } else if (target.attribute) {
      scope_.Load(target.name);
    } else {
      scope_.Store(target.name, branches_ == 0);
    }
  }

  void operator()(TextOutput&) {}
  void operator()(ValueOutput& node) { Visit(node.value); }
  void operator()(IfStatement& node) {
    for (auto& [test, body] : node.branches) {
      // Only the first test runs for certain, but reading is reading.
      Visit(test);
      ++branches_;
      Visit(body);
      --branches_;
    }
    ++branches_;
    Visit(node.otherwise);
    --branches_;
  }
  void operator()(ForStatement& node) { Visit(node.items); }
  void operator()(SetStatement& node) {
    Visit(node.value);
    Visit(node.target);
  }
  void operator()(SetBlockStatement& node) { Visit(node.target); }
  void operator()(FilterBlockStatement& node) { Visit(node.filter); }
  void operator()(WithStatement& node) {
    for (auto& [target, value] : node.values) Visit(value);
  }
  void operator()(ScopeStatement&) {}
  void operator()(MacroStatement& node) { scope_.Store(node.name, branches_ == 0); }
  void operator()(CallBlockStatement& node) { Visit(node.call); }
  void operator()(BreakStatement&) {}
  void operator()(ContinueStatement&) {}

 private:
  Scope& scope_;
  int branches_ = 0;
};

// Second pass: gives every name its place, and goes into the inner scopes.
class Resolver {
 public:
  Resolver(Scope& scope, NameTable& names) : scope_(scope), names_(names) {}

  void Visit(Block& block) {
    for (Statement& statement : block) std::visit(*this, statement.node);
  }
  void Visit(ExpressionPtr& expression) {
    if (expression != nullptr) Visit(*expression);
  }
  void Visit(Expression& expression) {
    if (NameUse* use = std::get_if<NameUse>(&expression.node)) use->place = scope_.Find(use->name);
    ForEachChild(expression, [this](Expression& child) { Visit(child); });
  }
  void Visit(Target& target) {
    for (Target& part : target.parts) Visit(part);
    if (!target.is_tuple) target.place = scope_.Find(target.name);
  }

  void operator()(TextOutput&) {}
  void operator()(ValueOutput& node) { Visit(node.value); }
  void operator()(IfStatement& node) {
    for (auto& [test, body] : node.branches) {
      Visit(test);
      Visit(body);
    }
    Visit(node.otherwise);
  }
  void operator()(ForStatement& node) {
    Visit(node.items);
    if (node.test != nullptr) {
      Scope test(scope_.function(), &scope_);
      Declare(test, node.test_target);
      Resolver(test, names_).Visit(node.test);
    }
    Scope body(scope_.function(), &scope_);
    Declare(body, node.target);
    node.loop_slot = body.Declare(names_.Intern("loop"));
    node.entry = Inside(body, node.body);
    Scope otherwise(scope_.function(), &scope_);
    node.otherwise_entry = Inside(otherwise, node.otherwise);
  }
  void operator()(SetStatement& node) {
    Visit(node.value);
    Visit(node.target);
  }
  void operator()(SetBlockStatement& node) {
    Visit(node.target);
    Scope body(scope_.function(), &scope_);
    Collector(body).Visit(node.body);
    Resolver(body, names_).Visit(node.filter);
    node.entry = Resolved(body, node.body);
  }
  void operator()(FilterBlockStatement& node) {
    Scope body(scope_.function(), &scope_);
    Collector collector(body);
    collector.Visit(node.body);
    collector.Visit(node.filter);
    Resolver(body, names_).Visit(node.filter);
    node.entry = Resolved(body, node.body);
  }
  void operator()(WithStatement& node) {
    Scope body(scope_.function(), &scope_);
    for (auto& [target, value] : node.values) {
      Visit(value);
      Declare(body, target);
    }
    node.entry = Inside(body, node.body);
  }
  void operator()(ScopeStatement& node) {
    Scope body(scope_.function(), &scope_);
    node.entry = Inside(body, node.body);
  }
  void operator()(MacroStatement& node) {
    node.place = scope_.Find(node.name);
    ResolveFunction(*node.function, &scope_, names_);
  }
  void operator()(CallBlockStatement& node) {
    Visit(node.call);
    ResolveFunction(*node.caller, &scope_, names_);
  }
  void operator()(BreakStatement&) {}
  void operator()(ContinueStatement&) {}

  static void ResolveFunction(Function& function, const Scope* around, NameTable& names) {
    Scope scope(function, around);
    for (Function::Parameter& parameter : function.parameters) {
      parameter.slot = scope.Declare(parameter.name);
    }
    if (around != nullptr) DeclareSpecial(function, scope, names);
    Collector collector(scope);
    for (Function::Parameter& parameter : function.parameters) collector.Visit(parameter.fallback);
    collector.Visit(function.body);
    Resolver resolver(scope, names);
    for (Function::Parameter& parameter : function.parameters) resolver.Visit(parameter.fallback);
    resolver.Visit(function.body);
    function.entry = scope.TakeStart();
  }

 private:
  static void Declare(Scope& scope, Target& target) {
    for (Target& part : target.parts) Declare(scope, part);
    if (!target.is_tuple) target.place = {0, scope.Declare(target.name)};
  }

  // The names that mean something in a macro that reads them.
  static void DeclareSpecial(Function& function, Scope& scope, NameTable& names) {
    const std::pair<std::string_view, std::optional<uint32_t>*> specials[] = {
        {"caller", &function.caller}, {"varargs", &function.varargs}, {"kwargs", &function.kwargs}};
    for (const auto& [text, slot] : specials) {
      const NameId name = names.Intern(text);
      if (Uses(function.body, name)) *slot = scope.Declare(name);
    }
  }

  ScopeEntry Inside(Scope& body, Block& block) {
    Collector(body).Visit(block);
    return Resolved(body, block);
  }
  ScopeEntry Resolved(Scope& body, Block& block) {
    Resolver(body, names_).Visit(block);
    return body.TakeStart();
  }

  Scope& scope_;
  NameTable& names_;
};

}  // namespace

void ResolveNames(Function& root, NameTable& names) {
  Resolver::ResolveFunction(root, nullptr, names);
}

}  // namespace fathom
