// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/world/transport_host.h"

#include <utility>

#include "include/status_macros.h"

namespace penstock::simulator {
namespace {

absl::Status WorkerHasStopped() {
  return absl::UnavailableError("the worker has stopped");
}

}  // namespace

absl::Status TransportHost::Listen(Network& network, const std::string& address) {
  auto begin = [host = weak_from_this()](std::shared_ptr<Connection> connection) {
    const std::shared_ptr<TransportHost> self = host.lock();
    return self == nullptr ? nullptr : self->Begin(std::move(connection));
  };
  ASSIGN_OR_RETURN(acceptor_, network.Listen(process_, address, std::move(begin)));
  return absl::OkStatus();
}

void TransportHost::Close() {
  acceptor_.reset();
  std::vector<std::shared_ptr<SendEnd>> links;
  {
    MutexLock lock(mu_);
    stopped_ = true;
    links = links_;
  }
  for (const std::shared_ptr<SendEnd>& link : links) link->Close(WorkerHasStopped());
  {
    MutexLock lock(mu_);
    none_.WaitFor(lock, absl::FromChrono(transfer::Listener::kStopTimeout),
                  [this]() REQUIRES(mu_) { return links_.empty(); });
  }
  for (const std::shared_ptr<SendEnd>& link : links) link->End(WorkerHasStopped());
}

std::shared_ptr<ConnectionEvents> TransportHost::Begin(std::shared_ptr<Connection> connection) {
  auto link =
      std::make_shared<SendEnd>(scheduler_, process_, shared_from_this(), std::move(connection));
  MutexLock lock(mu_);
  if (!stopped_) {
    links_.push_back(link);
    return link;
  }
  lock.unlock();
  link->End(WorkerHasStopped());
  return link;
}

absl::StatusOr<std::shared_ptr<transfer::SendEvents>> TransportHost::Accept(
    const transfer::Hello& hello, std::shared_ptr<transfer::SendLink> link) {
  return accept_(hello, std::move(link));
}

void TransportHost::OnOver(SendEnd& end) {
  {
    MutexLock lock(mu_);
    std::erase_if(links_, [&](const auto& one) { return one.get() == &end; });
  }
  none_.NotifyAll();
}

}  // namespace penstock::simulator
