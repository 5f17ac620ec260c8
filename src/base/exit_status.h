// Which status does a command exit with? Scripts rely on these numbers.
#pragma once

namespace fathom {

constexpr int kExitFine = 0;
constexpr int kExitFailed = 1;  // or findings (doctor, lint)
constexpr int kExitUnseen = 2;  // doctor, lint: could not read their input
constexpr int kExitUsage = 78;  // EX_CONFIG: wrong usage or configuration

}  // namespace fathom
