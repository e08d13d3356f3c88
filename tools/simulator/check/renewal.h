// SPDX-License-Identifier: Apache-2.0
// A dispatcher that was replaced must renew no lease of a peer. Checked for workers: an answer to a
// client may wait for a record, which does no harm, because the client's lease runs from the moment
// at which it sent the heartbeat.
#pragma once

namespace google::protobuf {
class Message;
}

namespace penstock::simulator {

// Returns whether a message that a dispatcher sends answers a worker's heartbeat.
bool RenewsLease(const google::protobuf::Message& message);

}  // namespace penstock::simulator
