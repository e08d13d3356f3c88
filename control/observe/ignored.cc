// SPDX-License-Identifier: Apache-2.0
#include "control/observe/ignored.h"

#include "control/observe/metrics.h"

namespace penstock {

static const char* NameOf(MessageStream stream) {
  switch (stream) {
    case MessageStream::kClientUp:
      return "client_up";
    case MessageStream::kClientDown:
      return "client_down";
    case MessageStream::kWorkerUp:
      return "worker_up";
    case MessageStream::kWorkerDown:
      return "worker_down";
  }
  return "other";
}

void CountIgnored(MessageStream stream) {
  ProcessMetrics()
      .GetCounter("penstock_ignored_messages_total",
                  "Messages of a kind that this release does not know, by the stream.",
                  {{"stream", NameOf(stream)}})
      .Add();
}

}  // namespace penstock
