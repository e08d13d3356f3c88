// SPDX-License-Identifier: Apache-2.0
#include "control/observe/refused.h"

#include "control/observe/metrics.h"

namespace penstock {
namespace {

const char* NameOf(Port port) {
  switch (port) {
    case Port::kPages:
      return "pages";
    case Port::kDispatcher:
      return "dispatcher";
    case Port::kGrpc:
      return "grpc";
    case Port::kTcp:
      return "tcp";
    case Port::kUcx:
      return "ucx";
    case Port::kShm:
      return "shm";
  }
  return "other";
}

const char* NameOf(Refused reason) {
  switch (reason) {
    case Refused::kTooMany:
      return "too_many";
    case Refused::kTooLate:
      return "too_late";
    case Refused::kTooLong:
      return "too_long";
    case Refused::kUnauthenticated:
      return "unauthenticated";
  }
  return "other";
}

}  // namespace

void CountRefused(Port port, Refused reason) {
  ProcessMetrics()
      .GetCounter("penstock_refused_total",
                  "Connections, calls and messages that a port refused, by the bound.",
                  {{"port", NameOf(port)}, {"reason", NameOf(reason)}})
      .Add();
}

}  // namespace penstock
