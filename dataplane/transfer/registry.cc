// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "absl/strings/str_join.h"
#include "control/sync/mutex.h"
#include "dataplane/transfer/builtin_transports.h"
#include "dataplane/transfer/transport.h"

namespace penstock::transfer {
namespace {

struct Registry {
  Mutex mu;
  std::vector<std::unique_ptr<Transport>> transports GUARDED_BY(mu) = BuiltinTransports();

  Transport* Find(std::string_view name) REQUIRES(mu) {
    for (const std::unique_ptr<Transport>& transport : transports) {
      if (transport->name() == name) return transport.get();
    }
    return nullptr;
  }
};

// Returns the registry. It is never destroyed, because links may be closing while the program ends.
Registry& TheRegistry() {
  static Registry& registry = *new Registry;
  return registry;
}

}  // namespace

absl::StatusOr<Transport*> FindTransport(std::string_view name) {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mu);
  if (Transport* transport = registry.Find(name)) return transport;
  lock.unlock();
  return absl::NotFoundError(absl::StrCat("transfer protocol '", std::string(name),
                                          "' is not in this build, which has ",
                                          absl::StrJoin(TransportNames(), ", ")));
}

std::vector<std::string> TransportNames() {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mu);
  std::vector<std::string> names;
  for (const std::unique_ptr<Transport>& transport : registry.transports) {
    names.emplace_back(transport->name());
  }
  return names;
}

absl::Status RegisterTransport(std::unique_ptr<Transport> transport) {
  Registry& registry = TheRegistry();
  MutexLock lock(registry.mu);
  if (registry.Find(transport->name()) != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(
        "a transfer protocol called '", std::string(transport->name()), "' is already registered"));
  }
  registry.transports.push_back(std::move(transport));
  return absl::OkStatus();
}

}  // namespace penstock::transfer
