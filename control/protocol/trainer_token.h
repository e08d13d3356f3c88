// SPDX-License-Identifier: Apache-2.0
// What a client says to a worker to be let in to a window that trainers share: the
// job's token, and behind it the trainer whose place in the window it reads from.
#pragma once

#include <optional>
#include <string>

namespace penstock::control {

// REQUIRES: no ':' in `token`; the dispatcher makes them of digits.
inline std::string TrainerToken(const std::string& token, const std::string& trainer) {
  return token + ":" + trainer;
}

// The trainer, empty if none is named; nullopt for another token.
inline std::optional<std::string> TrainerOf(const std::string& said, const std::string& token) {
  if (said.compare(0, token.size(), token) != 0) return std::nullopt;
  if (said.size() == token.size()) return std::string();
  if (said[token.size()] != ':') return std::nullopt;
  return said.substr(token.size() + 1);
}

}  // namespace penstock::control
