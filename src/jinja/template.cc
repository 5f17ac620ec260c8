#include "jinja/template.h"

#include <utility>
#include <vector>

#include "jinja/content_loop.h"
#include "jinja/interpreter.h"
#include "jinja/lexer.h"
#include "jinja/name_resolver.h"
#include "jinja/name_table.h"
#include "jinja/statement_parser.h"
#include "jinja/syntax.h"
#include "jinja/token_stream.h"
#include "unicode/utf8.h"

namespace fathom {

struct Template::Program {
  NameTable names;
  std::unique_ptr<Function> root;
  bool loops_over_content = false;
};

Result<Template> Template::Parse(std::string_view source) {
  if (source.size() > kMaxSource) {
    return Fail(Blame::kCaller, "a template of more than {} bytes", kMaxSource);
  }
  if (FindNotUtf8(source) != std::string_view::npos) {
    return Fail(Blame::kCaller, "a template that is not UTF-8");
  }
  auto program = std::make_unique<Program>();
  TRY(std::vector<Token> tokens, Tokenize(source));
  TokenStream stream(std::move(tokens), program->names);
  TRY(program->root, StatementParser(stream).Parse());
  ResolveNames(*program->root, program->names);
  program->loops_over_content = LoopsOverContent(*program->root, program->names);
  return Template(std::move(program));
}

Template::Template(std::unique_ptr<const Program> program) : program_(std::move(program)) {}
Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Result<std::string> Template::Render(const TemplateDict& globals,
                                     const RenderOptions& options) const {
  return Interpreter(program_->names, globals, options).Run(*program_->root);
}

bool Template::loops_over_content() const { return program_->loops_over_content; }

}  // namespace fathom
