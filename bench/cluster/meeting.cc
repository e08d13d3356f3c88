// SPDX-License-Identifier: Apache-2.0
#include "bench/cluster/meeting.h"

#include <poll.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/interrupt.h"
#include "control/protocol/host_port.h"
#include "dataplane/transfer/tcp/socket.h"
#include "penstock/status.h"

namespace penstock::bench {
namespace {

namespace tcp = transfer::tcp;
using nlohmann::json;

constexpr absl::Duration kHello = absl::Seconds(5);  // until a new connection has identified itself

struct Hello {
  int rank = -1, node = -1, port = 0;
};

// Returns nothing for a process of another launch.
std::optional<Hello> HelloOf(const std::string& line, const Rank& self) {
  const json said = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!said.is_object() || said.value("job", json()) != self.job) return std::nullopt;
  Hello hello;
  for (const auto& [field, into] :
       {std::pair("rank", &hello.rank), {"node", &hello.node}, {"port", &hello.port}}) {
    const json number = said.value(field, json());
    if (!number.is_number_integer()) return std::nullopt;
    *into = number.get<int>();
  }
  const bool known = hello.rank > 0 && hello.rank < self.count && hello.port > 0;
  return known ? std::optional(hello) : std::nullopt;
}

}  // namespace

void MakeKey() {
  std::random_device random;
  std::string key;
  for (int i = 0; i < 4; ++i) absl::StrAppend(&key, absl::Hex(random(), absl::kZeroPad8));
  ::setenv(kKeyVariable, key.c_str(), /*overwrite=*/1);
}

absl::StatusOr<Meeting> Meeting::Gather(const Rank& self, absl::Duration bound) {
  PENSTOCK_ASSIGN_OR_RETURN(const tcp::HostAndPort where, tcp::ParseAddress(self.leader));
  // Not bound to the leader's name: on many systems it means 127.0.1.1 locally.
  absl::StatusOr<tcp::Bound> listener = tcp::ListenAt({.host = "::", .port = where.port});
  if (!listener.ok()) listener = tcp::ListenAt({.host = "0.0.0.0", .port = where.port});  // no IPv6
  PENSTOCK_RETURN_IF_ERROR(listener.status());
  MakeKey();
  const std::string key = std::getenv(kKeyVariable);
  Meeting meeting;
  std::set<int> nodes = {self.node}, awaited;
  for (int rank = 1; rank < self.count; ++rank) awaited.insert(rank);
  const absl::Time end = absl::Now() + bound;
  while (!awaited.empty() && absl::Now() < end) {
    pollfd ready[] = {{.fd = listener->socket.fd(), .events = POLLIN, .revents = 0},
                      {.fd = InterruptFd(), .events = POLLIN, .revents = 0}};
    ::poll(ready, 2, static_cast<int>(absl::ToInt64Milliseconds(end - absl::Now())));
    PENSTOCK_RETURN_IF_ERROR(CheckInterrupted());
    PENSTOCK_ASSIGN_OR_RETURN(tcp::Socket socket, tcp::AcceptAt(listener->socket));
    if (!socket) continue;
    Connection connection(std::move(socket));
    const absl::StatusOr<std::string> line = connection.ReadLine(kHello);
    const std::optional<Hello> hello = line.ok() ? HelloOf(*line, self) : std::nullopt;
    if (!hello || awaited.erase(hello->rank) == 0) continue;
    if (!nodes.insert(hello->node).second) {
      connection.Write(json{{"bye", true}}.dump()).IgnoreError();
      continue;
    }
    if (!connection.Write(json{{"key", key}}.dump()).ok()) continue;
    Hosts hosts{.here = connection.here(), .there = connection.there()};
    const std::string agent = control::JoinHostPort(hosts.there, hello->port);
    hosts.run_there = {"", "bench-there", agent};
    meeting.attendees_.push_back({.rank = hello->rank, .hosts = std::move(hosts), .agent = agent});
    meeting.connections_.push_back(std::move(connection));
  }
  meeting.missing_.assign(awaited.begin(), awaited.end());
  std::sort(meeting.attendees_.begin(), meeting.attendees_.end(),
            [](const Attendee& a, const Attendee& b) { return a.rank < b.rank; });
  return meeting;
}

}  // namespace penstock::bench
