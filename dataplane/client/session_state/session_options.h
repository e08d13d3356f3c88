// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include "control/observe/event_log.h"
#include "control/protocol/requests.h"
#include "dataplane/client/session_state/delivery_fields.h"
#include "dataplane/client/session_state/state.h"
#include "dataplane/memory/pool.h"
#include "dataplane/transfer/transport.h"
#include "penstock/distribute.h"
#include "penstock/spec.h"

namespace penstock::client {

// The options of a session, constant during the session.
struct SessionOptions {
  DistributeOptions distribute;
  DeliveryFields delivery;                             // from `distribute`, with OfMember()
  transfer::TransportPreference transport_preference;  // the protocol of the links
  TlsConfig tls;                                       // for grpc links
  transfer::TcpOptions tcp;
  Spec spec;
  control::JobAnswer job;
  int64_t repetition = 0;
  ClientId client;
  Incarnation incarnation;
  std::optional<IndicesByPartition> state;  // the elements delivered before a restore
  std::vector<std::pair<int64_t, IndicesByPartition>> other_repetitions;  // in the restored state
  control::Heard heard;  // at the time when that state was saved
  // If true, the session claims the deliveries in `state` and then leaves; nobody calls Next().
  bool claims_only = false;
  // If true, and if the thread that calls Next() has PendingDeliveries, an element counts as
  // delivered only when the PendingDeliveries report it.
  bool delivers_later = false;
  // The pool for received elements, if the protocol can use one. The pool must outlive the session.
  // nullptr: DefaultPool().
  Pool* pool = nullptr;
  // Once a stop is requested, reading ends, and the deliveries are reported.
  std::stop_token stop;
  std::shared_ptr<EventLog> events = StderrEventLog();  // about links
};

}  // namespace penstock::client
