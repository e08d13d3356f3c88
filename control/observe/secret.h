// SPDX-License-Identifier: Apache-2.0
// The comparison of a presented secret with the right one. It lets nobody guess a secret byte by
// byte from the time that refusals take. Pure; any thread may call it.
#pragma once

#include <cstddef>
#include <string_view>

namespace penstock {

// Returns whether both are equal. The time depends on the length of `presented` only, never on the
// number of bytes that match. An empty secret equals an empty presented one, so a caller for whom
// an empty secret means "no secret" must test for it first.
inline bool SameSecret(std::string_view presented, std::string_view secret) {
  // Volatile: the compiler must not end the loop at the first difference.
  volatile unsigned char different = presented.size() == secret.size() ? 0 : 1;
  for (size_t i = 0; i < presented.size(); ++i) {
    const char right = secret.empty() ? '\0' : secret[i % secret.size()];
    different = different | static_cast<unsigned char>(presented[i] ^ right);
  }
  return different == 0;
}

}  // namespace penstock
