// SPDX-License-Identifier: Apache-2.0
// The token with which a client reads a shared window (a worker's window that several trainers
// share). It is the job's token, then ':' and the name of a trainer; the client reads from that
// trainer's place in the window.
#pragma once

#include <optional>
#include <string>

namespace penstock::control {

// REQUIRES: no ':' in `token`; the dispatcher's tokens are digits.
inline std::string TrainerToken(const std::string& token, const std::string& trainer) {
  return token + ":" + trainer;
}

// Returns the trainer, empty if none is named; nullopt for a different token.
inline std::optional<std::string> TrainerOf(const std::string& said, const std::string& token) {
  if (said.compare(0, token.size(), token) != 0) return std::nullopt;
  if (said.size() == token.size()) return std::string();
  if (said[token.size()] != ':') return std::nullopt;
  return said.substr(token.size() + 1);
}

}  // namespace penstock::control
