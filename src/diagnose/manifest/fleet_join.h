// Which files hold one half of a fleet each: its router, or its engines?
//
// A file is a fleet of its own unless it has nothing but routers, or nothing but engines. Files
// that hold both are left alone.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "diagnose/manifest/program.h"

namespace fathom {

enum class JoinScope : uint8_t {
  kAll,     // somebody has named these files together
  kFolder,  // each folder by itself, where it has one router and one kind of engine: a folder of
            // examples has many, and which of them work together is anybody's guess
};

// The graph that a file's programs are of, by the file's name; files that are not here keep theirs.
using JoinedFiles = std::map<std::string, std::string>;
JoinedFiles JoinHalves(const Deployment& deployment, JoinScope scope);

void Join(const JoinedFiles& files, Deployment& deployment);

}  // namespace fathom
