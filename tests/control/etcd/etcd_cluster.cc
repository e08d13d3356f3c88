// SPDX-License-Identifier: Apache-2.0
#include "tests/control/etcd/etcd_cluster.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "gtest/gtest.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

constexpr char kLoopback[] = "127.0.0.1:";

// Returns `count` free ports, all different.
std::vector<int> FreePorts(int count) {
  std::vector<int> sockets;
  std::vector<int> ports;
  for (int i = 0; i < count; ++i) {
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
    sockets.push_back(listener);
    ports.push_back(ntohs(address.sin_port));
  }
  for (int listener : sockets) close(listener);
  return ports;
}

// Starts a program, which writes to the end of the file `log`. Returns 0 if there is no such
// program.
pid_t Spawn(absl::Span<const std::string> command, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t process = 0;
  const int failed =
      posix_spawnp(&process, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0 ? process : 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EtcdCluster>> EtcdCluster::Start(const std::string& folder,
                                                                int processes,
                                                                const TlsConfig& tls) {
  std::unique_ptr<EtcdCluster> cluster(new EtcdCluster(folder, tls));
  const std::vector<int> ports = FreePorts(2 * processes);
  for (int i = 0; i < processes; ++i) {
    cluster->members_.push_back({.client_port = ports[2 * i], .peer_port = ports[2 * i + 1]});
  }
  for (int i = 0; i < processes; ++i) {
    cluster->Restart(i);
    if (cluster->members_[i].process == 0) {
      return absl::NotFoundError("the program etcd is missing; run `./run deps`");
    }
  }
  for (int i = 0; i < processes; ++i) {
    RETURN_IF_ERROR(cluster->AwaitAnswer(cluster->Options("test", i)));
  }
  return cluster;
}

EtcdCluster::~EtcdCluster() {
  for (int i = 0; i < size(); ++i) Kill(i);
}

std::string EtcdCluster::Url(const std::string& prefix, int only) const {
  std::vector<std::string> endpoints;
  for (int i = 0; i < size(); ++i) {
    if (only < 0 || only == i) {
      endpoints.push_back(absl::StrCat(kLoopback, members_[i].client_port));
    }
  }
  return absl::StrCat(tls_.empty() ? "etcd://" : "etcds://", absl::StrJoin(endpoints, ","), "/",
                      prefix);
}

EtcdOptions EtcdCluster::Options(const std::string& prefix, int only) const {
  EtcdOptions options;
  options.address = *ParseEtcdAddress(Url(prefix, only));
  options.tls = tls_;
  return options;
}

void EtcdCluster::Kill(int member) {
  pid_t& process = members_[member].process;
  if (process == 0) return;
  kill(process, SIGKILL);
  waitpid(process, nullptr, 0);
  process = 0;
}

void EtcdCluster::Stop(int member) {
  kill(members_[member].process, SIGSTOP);
}

void EtcdCluster::Continue(int member) {
  kill(members_[member].process, SIGCONT);
}

void EtcdCluster::Restart(int member) {
  const std::string client =
      absl::StrCat(tls_.empty() ? "http://" : "https://", kLoopback, members_[member].client_port);
  const std::string peer = absl::StrCat("http://", kLoopback, members_[member].peer_port);
  const std::string name = absl::StrCat("member", member);
  std::vector<std::string> command = {"etcd",
                                      "--name",
                                      name,
                                      "--data-dir",
                                      absl::StrCat(folder_, "/", name),
                                      "--listen-client-urls",
                                      client,
                                      "--advertise-client-urls",
                                      client,
                                      "--listen-peer-urls",
                                      peer,
                                      "--initial-advertise-peer-urls",
                                      peer,
                                      "--initial-cluster",
                                      Peers()};
  if (!tls_.empty()) {
    command.insert(command.end(), {"--cert-file", tls_.certificate, "--key-file", tls_.key,
                                   "--trusted-ca-file", tls_.ca, "--client-cert-auth"});
  }
  members_[member].process = Spawn(command, absl::StrCat(folder_, "/", name, ".log"));
}

std::string EtcdCluster::Peers() const {
  std::vector<std::string> peers;
  for (int i = 0; i < size(); ++i) {
    peers.push_back(absl::StrCat("member", i, "=http://", kLoopback, members_[i].peer_port));
  }
  return absl::StrJoin(peers, ",");
}

absl::Status EtcdCluster::AwaitAnswer(EtcdOptions options) const {
  ASSIGN_OR_RETURN(const std::shared_ptr<EtcdClient> client, EtcdClient::Make(std::move(options)));
  return client->Get({.key = "/none"}, absl::Minutes(1)).status();
}

absl::Status EtcdCluster::AddUser(const std::string& name, const std::string& password,
                                  const std::string& prefix) const {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"user", "add", "root:secret"},
           {"user", "grant-role", "root", "root"},
           {"role", "add", name},
           {"role", "grant-permission", "--prefix=true", name, "readwrite", prefix},
           {"user", "add", absl::StrCat(name, ":", password)},
           {"user", "grant-role", name, name},
           {"auth", "enable"}}) {
    RETURN_IF_ERROR(Control(arguments));
  }
  return absl::OkStatus();
}

absl::Status EtcdCluster::Control(absl::Span<const std::string> arguments) const {
  std::vector<std::string> command = {
      "etcdctl", absl::StrCat("--endpoints=http://", kLoopback, members_[0].client_port)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  const std::string log = absl::StrCat(folder_, "/etcdctl.log");
  const pid_t process = Spawn(command, log);
  if (process == 0) {
    return absl::NotFoundError("the program etcdctl is missing; run `./run deps`");
  }
  int status = 0;
  waitpid(process, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("etcdctl failed; see ", log));
}

}  // namespace penstock::control
