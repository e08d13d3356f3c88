// SPDX-License-Identifier: Apache-2.0
// The token with which a client reads a shared window. It is the job's token, then ':' and the name
// of a trainer. The client reads from that trainer's place in the window.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "control/observe/secret.h"

namespace penstock::control {

// REQUIRES: `token` contains no ':'. The dispatcher's tokens consist of digits.
inline std::string TrainerToken(const std::string& token, const std::string& trainer) {
  return token + ":" + trainer;
}

// Returns the name of the trainer in the token `said`; empty if `said` names no trainer; nullopt if
// `said` does not begin with the job's `token`.
inline std::optional<std::string> TrainerOf(const std::string& said, const std::string& token) {
  if (!SameSecret(std::string_view(said).substr(0, token.size()), token)) return std::nullopt;
  if (said.size() == token.size()) return std::string();
  if (said[token.size()] != ':') return std::nullopt;
  return said.substr(token.size() + 1);
}

}  // namespace penstock::control
