#include "text/jinja/template.h"

#include <utility>
#include <vector>

#include "text/jinja/content_loop.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/lexer.h"
#include "text/jinja/name_resolver.h"
#include "text/jinja/name_table.h"
#include "text/jinja/statement_parser.h"
#include "text/jinja/syntax.h"
#include "text/jinja/token_stream.h"
#include "text/unicode/utf8.h"

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

std::expected<std::string, RenderFailure> Template::Render(const TemplateDict& globals,
                                                           const RenderOptions& options) const {
  return Interpreter(program_->names, globals, options).Run(*program_->root);
}

bool Template::loops_over_content() const { return program_->loops_over_content; }

}  // namespace fathom
