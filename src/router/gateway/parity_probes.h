// Which prompts show whether an engine has the router's tokens?
//
// A few small ones, each of one kind: texts and chats with what tokenizers and templates treat in
// different ways (digits, spaces, accents in two normal forms, other scripts, emoji, the template's
// own special tokens in the user's text), a call of a tool and its result, and requests to the APIs
// of agents. They have nothing in them that an engine's /tokenize treats otherwise than its chats
// do. Their words are fixed: no client's text is in them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "router/gateway/request_fields.h"
#include "text/model/language_model.h"

namespace fathom {

struct ParityProbe {
  PromptApis api = kInChats;
  std::string body;  // JSON, without the name of a model

  // The members that determine its tokens; views into the body.
  PromptFields Parts() const;
};

// For the model as the library has it, whichever of its builds is used.
std::vector<ParityProbe> ParityProbesFor(const LanguageModel& model,
                                         const LanguageModel::Manner& manner);

// The router's tokens. Nothing where the files do not give all of them: there is nothing to
// compare.
std::optional<std::vector<TokenId>> TokensByFiles(const LanguageModel& model,
                                                  const PromptFields& parts,
                                                  const LanguageModel::Manner& manner);

}  // namespace fathom
