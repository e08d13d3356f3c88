// SPDX-License-Identifier: Apache-2.0
#include "bench/cluster/agent.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/cluster/connection.h"
#include "bench/cluster/meeting.h"
#include "bench/interrupt.h"
#include "bench/process.h"
#include "bench/scratch.h"
#include "control/protocol/host_port.h"
#include "penstock/status.h"

namespace penstock::bench {
namespace {

namespace tcp = transfer::tcp;
using nlohmann::json;

constexpr absl::Duration kOrder = absl::Seconds(5);  // until a new connection has sent its order
constexpr absl::Duration kLook = absl::Milliseconds(200);  // how often a command checks for its end
constexpr absl::Duration kAgentStart = absl::Minutes(2);   // by a remote shell
// The only subcommands that the leader's key permits.
const std::set<std::string>& Allowed() {
  static const auto& allowed = *new std::set<std::string>{
      "worker", "bench-socket", "bench-tool", "bench-survey", "bench-with", "bench-pair"};
  return allowed;
}

// Returns the arguments to run; PermissionDenied for an order without the key or for a subcommand
// that is not allowed.
absl::StatusOr<std::vector<std::string>> WordsOf(const std::string& line, const std::string& key) {
  const json order = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!order.is_object() || order.value("key", json()) != key) {
    return absl::PermissionDeniedError("an order without the key");
  }
  std::vector<std::string> words = {""};
  for (const json& word : order.value("arguments", json::array())) {
    if (!word.is_string()) return absl::InvalidArgumentError("an order that is no words");
    words.push_back(word.get<std::string>());
  }
  if (words.size() < 2 || !Allowed().contains(words[1])) {
    return absl::PermissionDeniedError("an order for what ranks do not do for each other");
  }
  return words;
}

// A command of the leader, in its own thread.
class Command {
 public:
  Command(Connection connection, std::string key, std::string log, const std::atomic<bool>& leave)
      : connection_(std::move(connection)),
        key_(std::move(key)),
        log_(std::move(log)),
        leave_(leave),
        thread_([this] {
          Run();
          done_ = true;
        }) {}
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command() { thread_.join(); }
  bool done() const { return done_; }

 private:
  void Run() {
    const absl::StatusOr<std::string> line = connection_.ReadLine(kOrder);
    if (!line.ok()) return;
    const absl::StatusOr<std::vector<std::string>> words = WordsOf(*line, key_);
    const absl::Status status = words.ok() ? PassOn(*words) : words.status();
    connection_.Write(absl::StrCat("2 ", status.message())).IgnoreError();
    connection_.HangUp();
  }

  // Runs the program and passes on its output. Returns when the program has ended, with its last
  // output as an error, or when the leader's side has closed.
  absl::Status PassOn(const std::vector<std::string>& words) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::unique_ptr<Process> process,
                              Process::Start(words, Process::Ends::kBySignal, log_));
    std::atomic<bool> left{false};
    std::thread listener([&] {
      connection_.ReadLine(absl::InfiniteDuration()).status().IgnoreError();
      left = true;
    });
    absl::Status status;
    while (!left && !leave_) {
      const absl::StatusOr<std::string> line = process->ReadLine(kLook);
      if (absl::IsDeadlineExceeded(line.status())) continue;
      status = line.ok() ? connection_.Write(absl::StrCat("1 ", *line)) : line.status();
      if (!status.ok()) break;
    }
    ::shutdown(connection_.fd(), SHUT_RD);  // wakes the listener
    listener.join();
    return status;
  }

  Connection connection_;
  const std::string key_, log_;
  const std::atomic<bool>& leave_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

// Serves until the leader closes the other end of `leader_fd`. Started programs find the key in
// their environment, since they may run commands on a third host.
absl::Status Serve(int leader_fd, const tcp::Socket& listening, const std::string& key) {
  ::setenv(kKeyVariable, key.c_str(), /*overwrite=*/1);
  PENSTOCK_ASSIGN_OR_RETURN(const Scratch scratch, Scratch::Make());
  std::atomic<bool> leave{false};
  std::list<Command> commands;
  for (int number = 0;;) {
    pollfd ready[] = {{.fd = leader_fd, .events = POLLIN, .revents = 0},
                      {.fd = listening.fd(), .events = POLLIN, .revents = 0},
                      {.fd = InterruptFd(), .events = POLLIN, .revents = 0}};
    if (::poll(ready, 3, -1) < 0) continue;
    if (Interrupted() || ready[0].revents != 0) break;  // the leader only closes it
    PENSTOCK_ASSIGN_OR_RETURN(tcp::Socket socket, tcp::AcceptAt(listening));
    commands.remove_if([](const Command& command) { return command.done(); });
    if (!socket) continue;
    commands.emplace_back(Connection(std::move(socket)), key,
                          absl::StrCat(scratch.path(), "/", number++, ".log"), leave);
  }
  leave = true;
  return CheckInterrupted();
}

}  // namespace

absl::Status ServeLeader(const Rank& self, absl::Duration bound) {
  PENSTOCK_ASSIGN_OR_RETURN(Connection leader, Connection::Make(self.leader, bound));
  PENSTOCK_ASSIGN_OR_RETURN(const tcp::Bound listener,
                            tcp::ListenAt({.host = leader.here(), .port = 0}));
  PENSTOCK_RETURN_IF_ERROR(leader.Write(
      json{{"job", self.job}, {"rank", self.number}, {"node", self.node}, {"port", listener.port}}
          .dump()));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string line, leader.ReadLine(bound));
  const json answer = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (answer.is_object() && answer.contains("bye")) return absl::OkStatus();
  const json key = answer.is_object() ? answer.value("key", json()) : json();
  if (!key.is_string() || key.get<std::string>().empty()) {
    return absl::InternalError(absl::StrCat("rank 0 said: ", line));
  }
  return Serve(leader.fd(), listener.socket, key.get<std::string>());
}

absl::StatusOr<Agent> StartAgent(std::vector<std::string> words, const std::string& host,
                                 const std::string& log) {
  words.insert(words.end(), {"bench-agent", host});
  Agent agent{.host = host};
  PENSTOCK_ASSIGN_OR_RETURN(agent.process,
                            Process::Start(std::move(words), Process::Ends::kWithInput, log));
  PENSTOCK_RETURN_IF_ERROR(agent.process->Write(std::getenv(kKeyVariable)));
  PENSTOCK_ASSIGN_OR_RETURN(const std::string port, agent.process->ReadLine(kAgentStart));
  agent.address = control::JoinHostPort(host, port);
  PENSTOCK_RETURN_IF_ERROR(tcp::ParseAddress(agent.address).status());
  return agent;
}

absl::Status ServeAt(const std::string& host) {
  std::string key;
  if (!std::getline(std::cin, key) || key.empty()) {
    return absl::InvalidArgumentError("no key at standard input");
  }
  PENSTOCK_ASSIGN_OR_RETURN(const tcp::Bound listener, tcp::ListenAt({.host = host, .port = 0}));
  std::cout << listener.port << std::endl;  // endl flushes
  return Serve(STDIN_FILENO, listener.socket, key);
}

absl::Status RunThere(const std::string& agent, const std::vector<std::string>& arguments) {
  const char* const key = std::getenv(kKeyVariable);
  if (key == nullptr) return absl::FailedPreconditionError("only rank 0 runs this");
  PENSTOCK_ASSIGN_OR_RETURN(Connection connection, Connection::Make(agent, kOrder));
  PENSTOCK_RETURN_IF_ERROR(connection.Write(json{{"key", key}, {"arguments", arguments}}.dump()));
  while (true) {
    const absl::StatusOr<std::string> line = connection.ReadLine(absl::InfiniteDuration());
    if (!line.ok() || line->size() < 2) return absl::UnavailableError("the other rank is gone");
    if (line->front() == '2') return absl::UnavailableError(line->substr(2));
    std::printf("%s\n", line->c_str() + 2);
    std::fflush(stdout);
  }
}

}  // namespace penstock::bench
