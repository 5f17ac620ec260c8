// One GET to the API server, whose answer is read as it comes and can be given up at any moment.
//
//   KubeCall call(loop, resolver);
//   auto sending = call.Send(*pass, "/api/v1/...", patience);
//   auto sent = co_await sending;               // the head is there
//   call.set_deadline(...);
//   while (!call.over()) {
//     for (const std::string_view piece : call.pieces()) ...
//     auto reading = call.Read();
//     auto read = co_await reading;
//   }
//
// There is no way here to send anything else than a GET, and none has a body. Each call has a
// connection of its own: of several API servers behind one address, the next one is asked by chance
// again. The server's silence is told from its death by the kernel's probes.
//
// Threads  On the loop.
// Memory   One buffer; head and pieces are views into it until the next Read().
// Errors   The peer's. After Cancel() all calls end soon, with an error.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/client/answer_reader.h"
#include "io/kube/kube_login.h"

namespace fathom {

class KubeCall {
 public:
  KubeCall(Loop& loop, Resolver& resolver)
      : resolver_(resolver), connection_(loop), answer_(connection_, kNever) {}
  KubeCall(const KubeCall&) = delete;
  KubeCall& operator=(const KubeCall&) = delete;

  // Returns when the answer's head has come, with whatever of its body came with it.
  Task<Result<void>> Send(const KubePass& pass, std::string_view path, TimePoint deadline);

  // For what is read from now on.
  void set_deadline(TimePoint deadline) { answer_.set_deadline(deadline); }
  Task<Result<void>> Read() { return answer_.Read(); }
  // The whole body, of at most `most` bytes.
  Task<Result<std::string>> ReadAll(size_t most);
  // Not inside this call.
  void Cancel() { connection_.Cancel(); }

  bool over() const { return answer_.over(); }
  const std::vector<std::string_view>& pieces() const { return answer_.pieces(); }
  int status() const { return status_; }
  // The server says that the body is JSON.
  bool json() const { return json_; }
  // How long the server asks to be left alone; 0: it does not.
  Duration retry_after() const { return retry_after_; }

 private:
  void TakeHead();

  Resolver& resolver_;
  ClientConnection connection_;
  AnswerReader answer_;
  int status_ = 0;
  bool json_ = false;
  Duration retry_after_{};
};

}  // namespace fathom
