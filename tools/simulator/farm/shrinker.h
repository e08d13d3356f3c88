// SPDX-License-Identifier: Apache-2.0
// Makes the text of a failing scenario smaller.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

namespace penstock::simulator {

// A scenario that fails under a seed.
struct Failing {
  std::string text;
  uint64_t seed = 0;
  std::string what;  // the first violation
};

// Tries a text. Returns it with a seed under which it fails in the same way; nullopt: none was
// found. A run of a changed text draws other numbers, so a search should try a few seeds.
using FindFailing = absl::FunctionRef<std::optional<Failing>(const std::string& text)>;

// Drops faults and other statements, and reduces the numbers of workers, trainers and elements,
// while `find` finds a failure. Tries at most `most_tries` texts, each of which can be parsed.
Failing Shrink(const Failing& failing, FindFailing find, int most_tries);

// Returns the text for a file: a comment that says what fails, the statements, and the seed.
std::string ToFile(const Failing& failing);

}  // namespace penstock::simulator
