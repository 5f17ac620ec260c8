// Where are the NATS servers, and who are we to them?
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"

namespace fathom {

struct NatsOptions {
  std::vector<std::string> urls;  // "nats://HOST:PORT", without credentials; any of them will do
  std::string name;               // of this client, in the server's own pages
  bool tls = false;

  // At most one of these four. Files are read at each connection, so that they may be replaced.
  std::string user;
  std::string password;
  std::string token;
  std::string nkey_seed_file;
  std::string credentials_file;  // JWT and seed, as nsc writes it

  std::string ca_file;  // empty: the system's authorities
  std::string certificate_file;
  std::string key_file;

  // The server must accept such a one; a longer one of others is not read.
  size_t longest_message = 1 << 20;

  Duration connect_time = std::chrono::seconds(2);  // per server, including the handshake
  Duration write_time = std::chrono::seconds(1);
  Duration ping_every = std::chrono::seconds(1);     // after two without an answer it is over
  Duration longest_pause = std::chrono::seconds(1);  // between attempts to connect
};

}  // namespace fathom
