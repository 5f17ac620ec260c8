// Why are the tokens of a prompt known only up to some place, or not at all?
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace fathom {

enum class Inexact : uint8_t {
  kImage,  // these are parts of a content that are no text: known up to the first of them
  kAudio,
  kVideo,
  kFile,
  kUnknownPart,
  kOwnTemplate,      // the request brings a template of its own
  kNoTemplate,       // the model has none that could be used
  kTemplateRefused,  // by raise_exception: the engine will refuse the chat, too
  kTemplateFailed,
  kNotAPrompt,  // not what a chat or a text looks like, or not UTF-8
  kTooLong,     // more text than is tokenized, or a word that is too long
  kTooLate,     // was not done in time
  kOverload,    // too much was being done already
  kTruncated,   // the request asks the engine to leave out its beginning
};
constexpr size_t kInexact = 14;

std::string_view Name(Inexact why);

// Whether an engine, if it is asked, may know more.
bool EngineMayKnow(Inexact why);

}  // namespace fathom
