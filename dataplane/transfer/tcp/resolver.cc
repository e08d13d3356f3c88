// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/tcp/resolver.h"

#include <utility>

#include "control/sync/mutex.h"
#include "control/sync/thread.h"

namespace penstock::transfer::tcp {

Resolver::~Resolver() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
  }
  asked_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

void Resolver::LookUp(HostAndPort where, Done done) {
  absl::StatusOr<std::vector<Endpoint>> number = tcp::LookUp(where, /*numeric=*/true);
  if (number.ok()) return done(std::move(number));
  MutexLock lock(mu_);
  if (!thread_.joinable()) {
    absl::StatusOr<Thread> thread = StartThread("looking up hosts", [this] { Run(); });
    if (!thread.ok()) {
      lock.unlock();
      return done(thread.status());
    }
    thread_ = *std::move(thread);
  }
  questions_.push_back({std::move(where), std::move(done)});
  lock.unlock();
  asked_.NotifyAll();
}

void Resolver::Run() {
  MutexLock lock(mu_);
  while (true) {
    asked_.Wait(lock, [&]() REQUIRES(mu_) { return stopping_ || !questions_.empty(); });
    if (stopping_) return;
    Question next = std::move(questions_.front());
    questions_.pop_front();
    lock.unlock();
    next.done(tcp::LookUp(next.where, /*numeric=*/false));
    next.done = nullptr;  // destroyed without the lock
    lock.lock();
  }
}

}  // namespace penstock::transfer::tcp
