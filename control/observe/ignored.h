// SPDX-License-Identifier: Apache-2.0
// Counts the messages of streams that this process ignores because it does not know their kind, in
// penstock_ignored_messages_total{stream}. A peer of a later release sends such messages.
#pragma once

namespace penstock {

enum class MessageStream {
  kClientUp,  // from a client to the dispatcher
  kClientDown,
  kWorkerUp,  // from a worker to the dispatcher
  kWorkerDown,
};

// Adds one. Any thread may call it. Takes a lock.
void CountIgnored(MessageStream stream);

}  // namespace penstock
