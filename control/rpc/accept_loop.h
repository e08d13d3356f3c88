// SPDX-License-Identifier: Apache-2.0
// Accepts the connections of a gRPC server. gRPC 1.51 has a listener of its own, but this listener
// stops for ever when accept fails once for lack of a descriptor.
//
// The loop keeps some of the process's descriptors free: a connection that would take one of them
// is closed and counted (control/observe/refused.h). So clients cannot prevent the process from
// opening files. Connections whose clients do not prove who they are get only so much of gRPC's
// time (control/observe/connection_pace.h). While such connections wait, new ones are accepted
// together, every 50 ms, or less often while thousands wait.
#pragma once

#include <grpcpp/server_builder.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "control/observe/connection_pace.h"
#include "control/observe/refused.h"
#include "control/sync/thread.h"

namespace penstock::control {

class AcceptLoop {
 public:
  // Takes over the descriptor of a connection. Called on the loop's thread.
  using Take = std::function<void(int fd)>;
  // Returns the function that passes connections to the server that `builder` will make. The server
  // closes connections that it gets before its start or after its shutdown.
  static Take Into(grpc::ServerBuilder& builder,
                   std::shared_ptr<grpc::ServerCredentials> credentials);

  // Listens at `port` (0: any free port) of all addresses of `host`. "0.0.0.0" also means "::",
  // if the kernel has IPv6. `counted_as`: the label of refusals. Unavailable if the port is in use,
  // or if this host does not have the address.
  static absl::StatusOr<std::unique_ptr<AcceptLoop>> Listen(const std::string& host, int port,
                                                            Port counted_as, PaceLimits pace = {});
  ~AcceptLoop();  // calls Stop()
  AcceptLoop(const AcceptLoop&) = delete;
  AcceptLoop& operator=(const AcceptLoop&) = delete;

  int port() const { return port_; }
  // Accepts until Stop(). ResourceExhausted if the process cannot get a thread. Call it once.
  absl::Status Start(Take take);
  // Decides which connections wait. Never null.
  const std::shared_ptr<ConnectionPace>& pace() const { return pace_; }
  // A client has proved who it is, on the connection from `peer` (grpc::ServerContext::peer()). Any
  // thread may call it, any number of times for a connection.
  void Proved(const std::string& peer);
  // Accepts no more, and closes the port. Any thread may call it, any number of times.
  void Stop();

 private:
  AcceptLoop(Port counted_as, PaceLimits pace);
  absl::Status Bind(const std::string& host, int port);
  void Run();
  bool AcceptFrom(int listener);

  const Port counted_as_;
  const int wake_;  // an eventfd
  std::atomic<bool> stopping_{false};
  const std::shared_ptr<ConnectionPace> pace_;
  int port_ = 0;
  std::vector<int> listeners_;  // closed by the thread
  Take take_;
  Thread thread_;
};

}  // namespace penstock::control
