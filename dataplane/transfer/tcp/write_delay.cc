// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/write_delay.h"

#include "dataplane/transfer/message.h"
#include "dataplane/transfer/tcp/message_writer.h"

namespace penstock::transfer::tcp {
namespace {

// Fewer bytes than kMinWriteBytes wait for more if the previous element was sent this recently.
constexpr std::chrono::microseconds kFast(100);

}  // namespace

bool WriteDelay::Hold(size_t bytes) {
  if (bytes < kFrameBelow && held_bytes_ == 0) return false;  // waits in its frame
  const Loop::Clock::time_point now = Loop::Clock::now();
  const bool fast = now - std::exchange(last_element_, now) < kFast;
  if (!fast || held_bytes_ + bytes >= kMinWriteBytes) return false;
  held_bytes_ += bytes;
  return true;
}

}  // namespace penstock::transfer::tcp
