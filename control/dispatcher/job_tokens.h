// SPDX-License-Identifier: Apache-2.0
// How a dispatcher makes the tokens of its jobs. The holder of a job's token may read its elements.
// The journal contains only the job's nonce (JobRecord). Who has the key makes the same token from
// the nonce in each life; without the key, nobody can make it. server/job_key.h keeps the key.
//
// A job of an older release has a random token of its own in the journal, until it is removed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "control/state/state.h"

namespace penstock::control {

struct JobTokens {
  uint64_t key_id = 0;  // identifies the key, but tells nothing about it; never 0
  // Pure; any thread may call it. Returns hexadecimal digits: no token contains ':'.
  std::function<std::string(const std::string& nonce)> make;

  std::string Of(const JobRecord& job) const {
    return job.nonce.empty() ? job.token : make(job.nonce);
  }
};

}  // namespace penstock::control
