// In which words does an engine refuse a request?
//
// Each has its own shapes, and another one for each API: vLLM 0.32 and SGLang 0.5.23 as running
// ones were seen to answer, TensorRT-LLM as its source says.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/http/server_connection.h"
#include "lab/mock/mock_options.h"

namespace fathom {

// The routes whose bodies an engine looks into.
enum class MockRoute : uint8_t {
  kOther,
  kCompletions,
  kChat,
  kResponses,
  kMessages,
  kCountTokens,
  kEmbeddings,
  kGenerate,  // SGLang's /generate, or vLLM's /inference/v1/generate
  kTokenize,
  kDetokenize,
};

// kOther: the engine has no such route, or it is none that takes JSON.
MockRoute RouteOf(MockedEngine engine, std::string_view path);

// Something that the route's own code refuses, once the body has the right form.
struct Refusal {
  int status = 400;
  std::string_view type = "BadRequestError";
  std::string message;
  std::string_view param = {};
};
Answer RefusalAnswer(MockedEngine engine, MockRoute route, const Refusal& refusal);

// What is wrong with one member of a body, as Pydantic writes it.
struct FieldProblem {
  std::string_view type;           // missing, int_parsing, ...
  std::vector<std::string> place;  // behind "body"
  std::string message;             // Input should be a valid integer
  std::string input;               // the JSON that was sent; empty: none
  std::string context = {};        // repr() of a dictionary; empty: none
  std::string_view setting = {};   // that vLLM names as `param`, instead of the place
};
Answer FormAnswer(MockedEngine engine, MockRoute route, const std::vector<FieldProblem>& problems);

// A body that was not announced as JSON.
Answer MediaTypeAnswer(MockedEngine engine, MockRoute route);

Answer NotFoundAnswer();
Answer MethodNotAllowedAnswer(std::string_view allowed);

}  // namespace fathom
