// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/connector.h"

#include <utility>

#include "include/status_macros.h"

namespace penstock::transfer::tcp {

absl::StatusOr<bool> Connector::Advance(uint32_t events, Loop& loop,
                                        const std::shared_ptr<Loop::Member>& member,
                                        Socket& socket) {
  if (!endpoints_.has_value()) return false;
  RETURN_IF_ERROR(endpoints_->status());
  if (connecting_) {
    if (events == 0) return false;
    last_failure_ = Connected(socket);
    if (last_failure_.ok()) return true;
    loop.Remove(socket, *member);
    connecting_ = false;
  }
  const std::vector<Endpoint>& endpoints = **endpoints_;
  while (tried_ < endpoints.size()) {
    absl::StatusOr<Socket> next = BeginConnecting(endpoints[tried_++]);
    if (next.ok()) {
      socket = *std::move(next);
      last_failure_ = loop.Add(socket, member);
      connecting_ = last_failure_.ok();
      if (connecting_) return false;
    } else {
      last_failure_ = next.status();
    }
  }
  return last_failure_;
}

}  // namespace penstock::transfer::tcp
