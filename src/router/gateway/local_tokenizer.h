// The tokens of a prompt from the model's own files, in this process.
//
// A small amount of new text is rendered and encoded on the loop. Work that would block the loop,
// because the text is long or the template takes many steps, runs on separate threads; the request
// waits for it until its deadline, then continues with the known
// beginning. The work continues, so that the next turn of the conversation finds its result.
//
// Threads  One per loop.
// Memory   Prompts of more than kLongest bytes are not tokenized. SideWork bounds the texts that
//          the threads hold.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/net/loop.h"
#include "io/net/side_work.h"
#include "io/net/task.h"
#include "router/gateway/request_fields.h"
#include "text/model/language_model.h"

namespace fathom {

class LocalTokenizer {
 public:
  // Parsed, rendered and split in about a millisecond.
  static constexpr size_t kMostAtOnce = size_t{256} << 10;
  // A template with so many steps runs for a few milliseconds. Most chats take some hundred.
  static constexpr uint64_t kMostStepsAtOnce = 50'000;
  // Beside the loop.
  static constexpr Duration kLongestRender = std::chrono::milliseconds(500);
  // Encoded in a few milliseconds.
  static constexpr size_t kMostNewAtOnce = size_t{32} << 10;
  // Far more than any context holds.
  static constexpr size_t kLongest = size_t{32} << 20;

  LocalTokenizer(Loop& loop, SideWork& side_work, TokenCache& cache, uint64_t secret)
      : loop_(loop), side_work_(side_work), cache_(cache), secret_(secret) {}

  struct Manner {
    ChatDialect dialect = ChatDialect::kVllm;
    bool literal_user_text = false;
    std::optional<std::string> reasoning_parser = {};
  };

  struct Reading {
    bool whole = false;              // the tokens are those of the whole prompt
    std::optional<Inexact> inexact;  // why not
    std::string problem;             // details, without any text of the prompt
    std::vector<PromptParts::Place> places;
  };
  // Appends the tokens, or those of the known beginning. The fields must stay valid until the task
  // has ended.
  Task<Reading> Read(std::shared_ptr<const LanguageModel> model, const PromptFields& fields,
                     const Manner& manner, TimePoint deadline, std::vector<TokenId>& tokens);

 private:
  struct Work;

  static void Render(Work& work, const RenderLimits& limits);
  // False: it takes too many steps for the loop.
  static bool RenderAtOnce(Work& work);
  static void Encode(Work& work);
  static Reading Take(const Work& work, std::vector<TokenId>& tokens);
  bool HandOver(const std::shared_ptr<Work>& work, size_t bytes);

  Loop& loop_;
  SideWork& side_work_;
  TokenCache& cache_;
  const uint64_t secret_;
};

}  // namespace fathom
