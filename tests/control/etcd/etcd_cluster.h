// SPDX-License-Identifier: Apache-2.0
// A cluster of real etcd processes on loopback, with etcd's default times.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "control/etcd/etcd_client.h"

namespace penstock::control {

// Kills its processes when destroyed. One thread.
class EtcdCluster {
 public:
  // Starts the processes and waits until they answer. `folder` must exist; it gets the data.
  // NotFound, with the remedy, if the program etcd is missing.
  // `tls`: of each process towards its clients, which must show certificates of its `ca`; empty:
  // plain text.
  static absl::StatusOr<std::unique_ptr<EtcdCluster>> Start(const std::string& folder,
                                                            int processes = 3,
                                                            const TlsConfig& tls = {});
  ~EtcdCluster();

  // The URL of all processes, or of the process `only`.
  std::string Url(const std::string& prefix = "test", int only = -1) const;
  EtcdOptions Options(const std::string& prefix = "test", int only = -1) const;
  int size() const { return static_cast<int>(members_.size()); }

  void Kill(int member);  // kill -9
  void Stop(int member);  // SIGSTOP
  void Continue(int member);
  // Starts a killed process with the data that it had.
  void Restart(int member);
  // Waits until a client of the given options can read, or of any member.
  absl::Status AwaitAnswer(EtcdOptions options) const;
  // Lets users in only with their passwords, and makes one who may read and write only the keys
  // that begin with `prefix`. Once for a cluster without TLS.
  absl::Status AddUser(const std::string& name, const std::string& password,
                       const std::string& prefix) const;
  // Runs etcdctl with these arguments on the first member.
  absl::Status Control(absl::Span<const std::string> arguments) const;

 private:
  struct Member {
    int client_port = 0;
    int peer_port = 0;
    pid_t process = 0;  // 0: killed
  };

  EtcdCluster(std::string folder, TlsConfig tls)
      : folder_(std::move(folder)), tls_(std::move(tls)) {}
  std::string Peers() const;

  const std::string folder_;
  const TlsConfig tls_;
  std::vector<Member> members_;
};

}  // namespace penstock::control
