// SPDX-License-Identifier: Apache-2.0
// etcd on the simulated network: the port of its process, and a client for the product's leadership
// and journal. A client has one connection for all calls, as the product's client over gRPC has; a
// call that has lost its answer ends with the same codes.
//
// Messages on a connection: "<number> <method> <request>" from the client, and
// "<number> <code> <answer or message>" from etcd. Methods are those of control/etcd/etcd.proto.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "control/etcd/etcd_client.h"
#include "tools/simulator/world/etcd_state.h"
#include "tools/simulator/world/network.h"

namespace penstock::simulator {

inline constexpr char kEtcdHost[] = "etcd";
inline constexpr char kEtcdAddress[] = "etcd:2379";

// Used on fibers of the process that serves.
class EtcdPort {
 public:
  // Serves `state`, which must outlive the port, at kEtcdAddress on fibers of `at`. AlreadyExists
  // if a living process listens there.
  static absl::StatusOr<std::unique_ptr<EtcdPort>> Open(Network& network,
                                                        const std::shared_ptr<Process>& at,
                                                        EtcdState& state);
  // Breaks all connections. Call it on a fiber, also if the process was killed.
  ~EtcdPort();

  // Ends the leases whose time is over.
  void EndLeases();

 private:
  class Visit;

  explicit EtcdPort(EtcdState& state) : state_(state) {}
  void AnswerWatches();

  EtcdState& state_;
  std::unique_ptr<Acceptor> acceptor_;
  uint64_t last_visit_ = 0;
  std::map<uint64_t, std::shared_ptr<Visit>> visits_;  // the open connections
};

// Makes a client for `process`, on whose fibers it is used. Once the process was killed, all calls
// return Cancelled. `patience`: EtcdOptions::patience. `network` must outlive the client.
std::shared_ptr<control::EtcdClient> MakeEtcdClient(Network& network,
                                                    std::shared_ptr<Process> process,
                                                    absl::Duration patience);

}  // namespace penstock::simulator
