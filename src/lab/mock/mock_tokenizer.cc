#include "lab/mock/mock_tokenizer.h"

#include <utility>

#include "base/wall_time.h"
#include "codec/json_scan.h"
#include "lab/mock/part_description.h"
#include "lab/mock/toy_template.h"
#include "lab/mock/toy_tokenizer.h"
#include "text/chat/chat_texts.h"
#include "text/chat/messages_request.h"
#include "text/chat/responses_request.h"

namespace fathom {
namespace {

ChatDialect DialectOf(MockedEngine engine) {
  switch (engine) {
    case MockedEngine::kVllm:
      return ChatDialect::kVllm;
    case MockedEngine::kSglang:
      return ChatDialect::kSglang;
    case MockedEngine::kTrtllm:
      return ChatDialect::kTrtllm;
  }
  return ChatDialect::kVllm;
}

}  // namespace

MockTokenizer::MockTokenizer(const MockOptions& options)
    : model_(options.language_model.get()),
      dialect_(DialectOf(options.engine)),
      reasoning_parser_(options.reasoning_parser) {}

Result<std::vector<TokenId>> MockTokenizer::Text(std::string_view json,
                                                 std::string_view add_special_tokens) const {
  if (model_ != nullptr) return Encode(model_->RenderText(json, add_special_tokens, dialect_));
  const auto text = JsonText(json);
  if (!text) return Fail(Blame::kCaller, "prompt must be a string");
  return ToyTokens(*text);
}

Result<std::vector<TokenId>> MockTokenizer::Chat(const ChatFields& chat) const {
  if (model_ == nullptr) return ToyChat(chat);
  const LanguageModel::Manner manner{
      .dialect = dialect_, .reasoning_parser = reasoning_parser_, .now = LocalSecondsNow()};
  RenderedPrompt rendered = model_->RenderChat(chat, manner);
  const bool part = rendered.inexact && IsPart(*rendered.inexact);
  if (!part || chat.api != PromptApi::kChat) return Encode(rendered);
  ChatFields described = chat;
  TRY(const std::string messages, DescribeParts(chat.messages));
  described.messages = messages;
  return Encode(model_->RenderChat(described, manner));
}

Result<std::vector<TokenId>> MockTokenizer::ToyChat(const ChatFields& chat) const {
  if (chat.api == PromptApi::kChat) {
    TRY(const std::string text, RenderToyChat(chat));
    return ToyTokens(text);
  }
  EngineHabits habits;
  habits.thoughts = MarksOfParser(reasoning_parser_);
  TRY(const ChatSource source, chat.api == PromptApi::kMessages
                                   ? ReadMessages(chat, dialect_, habits)
                                   : ReadResponses(chat, dialect_, habits));
  const ChatTexts texts = WriteChat(source);
  TRY(const std::string text, RenderToyChat({.messages = texts.messages, .tools = texts.tools}));
  return ToyTokens(text);
}

// Without the cuts and the memory that save work elsewhere.
Result<std::vector<TokenId>> MockTokenizer::Encode(const RenderedPrompt& rendered) const {
  if (rendered.inexact) {
    return Fail(Blame::kCaller, "{}: {}", Name(*rendered.inexact), rendered.problem);
  }
  const LanguageModel::Lease encoder = model_->Borrow();
  return (*encoder).Encode(rendered.prompt.text, rendered.prompt.add_special);
}

Result<std::vector<TokenId>> MockTokenizer::Continuation(std::string_view text) const {
  if (model_ == nullptr) return ToyTokens(text);
  const LanguageModel::Lease encoder = model_->Borrow();
  std::vector<TextPiece> pieces;
  model_->tokenizer().Split(text, pieces);
  std::vector<TokenId> tokens;
  for (const TextPiece& piece : pieces) {
    if (piece.is_token()) {
      tokens.push_back(piece.token);
    } else {
      TRY_VOID((*encoder).EncodeText(piece.text, false, tokens));
    }
  }
  return tokens;
}

Result<void> MockTokenizer::CheckIds(std::span<const TokenId> ids) const {
  if (model_ == nullptr) return {};
  const size_t size = model_->tokenizer().vocabulary_size();
  for (const TokenId id : ids) {
    if (id >= size) return Fail(Blame::kCaller, "Token id {} is out of vocabulary", id);
  }
  return {};
}

std::string MockTokenizer::Piece(TokenId token) const {
  if (model_ != nullptr) return model_->tokenizer().Piece(token);
  std::string piece;
  AppendToyText(piece, token);
  return piece;
}

std::string MockTokenizer::Decode(std::span<const TokenId> tokens) const {
  return model_ != nullptr ? model_->tokenizer().Decode(tokens) : ToyText(tokens);
}

}  // namespace fathom
