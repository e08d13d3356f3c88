// SPDX-License-Identifier: Apache-2.0
// A worker's port of the transport "sim", and its links.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/sync/condition.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/transport.h"
#include "tools/simulator/engine/scheduler.h"
#include "tools/simulator/world/network.h"
#include "tools/simulator/world/send_end.h"

namespace penstock::simulator {

// Used by the fibers of one process.
class TransportHost : public SendEnd::Owner, public std::enable_shared_from_this<TransportHost> {
 public:
  TransportHost(Scheduler& scheduler, std::shared_ptr<Process> process,
                transfer::Listener::Accept accept)
      : scheduler_(scheduler), process_(std::move(process)), accept_(std::move(accept)) {}

  // AlreadyExists if a living process listens at the address.
  absl::Status Listen(Network& network, const std::string& address);
  // Closes all links, ends those whose clients do not close, and waits until no link is left.
  void Close();

 private:
  std::shared_ptr<ConnectionEvents> Begin(std::shared_ptr<Connection> connection);
  absl::StatusOr<std::shared_ptr<transfer::SendEvents>> Accept(
      const transfer::Hello& hello, std::shared_ptr<transfer::SendLink> link) override;
  void OnOver(SendEnd& end) override;

  Scheduler& scheduler_;
  const std::shared_ptr<Process> process_;
  const transfer::Listener::Accept accept_;
  std::unique_ptr<Acceptor> acceptor_;

  Mutex mu_;
  Condition none_;
  bool stopped_ GUARDED_BY(mu_) = false;
  std::vector<std::shared_ptr<SendEnd>> links_ GUARDED_BY(mu_);
};

}  // namespace penstock::simulator
