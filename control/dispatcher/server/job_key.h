// SPDX-License-Identifier: Apache-2.0
// The key from which a dispatcher makes the tokens of its jobs, and the file that keeps it from one
// life to the next. The key has 256 random bits. The file contains them as 64 hexadecimal digits
// and a newline, and only the dispatcher's user may read it.
//
// The key is secret. The journal contains only its id, by which a wrong file is noticed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "control/dispatcher/job_tokens.h"
#include "control/env/disk.h"
#include "penstock/server.h"

namespace penstock::control {

// The size of a key in bytes.
inline constexpr size_t kJobKeyBytes = 32;

// Returns a new key, which nobody can guess.
std::string DrawJobKey();

// Makes tokens with `key`: the first 128 bits of HMAC-SHA256(key, nonce), as hexadecimal digits.
JobTokens TokensWith(std::string key);

// Returns the path of the key's file. REQUIRES: the config has a work_dir.
std::string JobKeyFileOf(const DispatcherConfig& config);

// Reads the key from its file. If there is no file and `needed` is 0, draws a key and makes the
// file durable. FailedPrecondition, with the file's name and the ways out, if the file is missing
// or has another key than the one with the id `needed`; DataLoss if its content is not a key.
absl::StatusOr<JobTokens> OpenJobKey(const DispatcherConfig& config, uint64_t needed,
                                     Disk& disk = LocalDisk());

}  // namespace penstock::control
