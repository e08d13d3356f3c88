// SPDX-License-Identifier: Apache-2.0
// Paces the connections of clients that do not prove who they are, so that they cannot use up a
// server's CPU. A port passes each new connection to its pace, serves the connections that the pace
// returns, and reports each client that has proved itself.
//
// A source is an IPv4 address, or the first half of an IPv6 address, since one host may have all
// addresses of a network. Over a Unix socket, a source is a process. Each source has a number of
// places. A connection takes a place. It gives the place back when its client has proved itself;
// else the place is free again after some time. Each client that proves itself gives its source one
// more place, and each that does not takes eight of these away: many honest clients that come back
// at once are slow to prove themselves, because their hosts and the server are busy. A connection
// without a place waits. Clients of other sources wait 50 ms at most, or 0.5 s while thousands
// wait. Honest clients of the same source give their places back at once, so any number of them
// gets in.
//
// A connection costs little while it waits except its descriptor. Waiting connections have half of
// the process's descriptors at most; above that, the newest of the source that has most of them is
// closed. A waiting connection is also closed if its client goes away or has waited for too long. A
// client that says nothing keeps no other client waiting. A look at all that wait takes a tenth of
// a thread's time at most.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "control/observe/event_log.h"
#include "control/observe/refused.h"
#include "control/sync/mutex.h"

namespace penstock {

struct PaceLimits {
  size_t places = 32;        // of one source at first
  size_t most_places = 128;  // of one source whose clients prove themselves
  // The time after which a place is free again: 16 connections per second. A connection that fails
  // costs a server up to 1 ms.
  absl::Duration per_place = absl::Milliseconds(62.5);
  // A client that has not proved itself takes one more place for each part of this size that it has
  // sent. 1 KiB opens 10 streams, and a stream that is reset at once costs gRPC 0.1 ms.
  uint64_t bytes_per_place = 1 << 10;
  // The longest time for which a source that has sent much has no free place.
  absl::Duration most_delay = absl::Seconds(2);
  // Connections of all sources. If fewer could wait, the others would come again and again, which
  // costs more than to let them wait.
  size_t waiting = 2048;
  size_t sources = 4096;                        // further sources are treated as a single one
  absl::Duration patience = absl::Seconds(10);  // with a client that waits
};

// The client's end of a connection.
struct ClientAddress {
  // 4 bytes, also of an IPv4 address on an IPv6 socket, or 16. Over a Unix socket, a text with the
  // number of the process.
  std::string host;
  uint16_t port = 0;  // 0 over a Unix socket

  // Returns the host, or the network of 64 bits of an IPv6 address.
  std::string source() const { return host.size() == 16 ? host.substr(0, 8) : host; }
  auto operator<=>(const ClientAddress&) const = default;
};
// Returns the address of the client of a connected socket.
ClientAddress ClientOf(int fd);
// Parses the text that gRPC uses for an address: "ipv4:10.0.0.7:5050" or "ipv6:[::1]:5050", where
// the brackets may be written as %5B and %5D. Another text gives an empty address.
ClientAddress ClientFromGrpc(const std::string& text);

// Returns whether a descriptor with this number is one of those that connections leave free, so
// that the process can open files: 64, but at most a quarter of all.
bool IsKeptFree(int fd);

// Any thread may call any method.
class ConnectionPace {
 public:
  struct Arrived {
    int fd;  // the receiver owns it
    ClientAddress client;
  };

  // `events`: gets "connections_refused" with the address of a source when one of its connections
  // is refused, at most once a second.
  explicit ConnectionPace(Port counted_as, PaceLimits limits = {},
                          std::shared_ptr<EventLog> events = StderrEventLog());
  ~ConnectionPace();  // closes the connections that wait
  ConnectionPace(const ConnectionPace&) = delete;
  ConnectionPace& operator=(const ConnectionPace&) = delete;

  // A connection has come, at the time `now`. Takes over the descriptor.
  void Add(int fd, absl::Time now);
  // Returns the connections to serve now.
  std::vector<Arrived> Take(absl::Time now);
  // Returns when Take() must be called again; InfiniteFuture if no connection waits. A port should
  // accept no connection until then: to accept those of a flood one by one costs much more than to
  // accept them together.
  absl::Time NextTake() const;
  // The client of a connection that Take() has returned has proved itself. Returns true if this
  // lets in a connection that waits, so that Take() should be called now. May be called again for
  // the same connection, except over a Unix socket.
  bool Proved(const ClientAddress& client);
  // A client that has not proved itself has sent `bytes` more than a client needs to prove itself.
  void Sent(const ClientAddress& client, uint64_t bytes, absl::Time now);

 private:
  struct Waiting {
    int fd;
    ClientAddress client;
    absl::Time since;
  };
  struct Source {
    size_t places = 0;
    // Ports of connections that have a place, oldest first. A connection that has sent much has
    // several. 0: over a Unix socket.
    std::deque<uint16_t> unproven;
    absl::Time next_free;         // when the oldest place is free again
    uint64_t bytes = 0;           // for which Sent() has taken no place
    std::deque<Waiting> waiting;  // oldest first
  };

  bool IsFull(int fd) const REQUIRES(mu_);
  void NoteSourceWithMost() REQUIRES(mu_);
  Waiting TakeNewestOfMost(Source& newcomers) REQUIRES(mu_);
  void Refuse(const Waiting& one, absl::Time now);
  Source& SourceOf(const std::string& name, absl::Time now) REQUIRES(mu_);
  Source& Named(const std::string& name) REQUIRES(mu_);
  void ForgetIdle(absl::Time now) REQUIRES(mu_);
  void FreePlaces(Source& source, absl::Time now) const;
  bool TakePlace(Source& source, uint16_t port, absl::Time now) const;
  void AdmitNewest(Source& source, absl::Time now) REQUIRES(mu_);
  void Look(Source& source, absl::Time now) REQUIRES(mu_);
  bool Leaves(const Waiting& one, short events, absl::Time now) const;

  const Port counted_as_;
  const PaceLimits limits_;
  const std::shared_ptr<EventLog> events_;
  mutable Mutex mu_;
  std::map<std::string, Source> sources_ GUARDED_BY(mu_);
  std::vector<Arrived> admitted_ GUARDED_BY(mu_);  // by Add(), for the next Take()
  // The source with most connections that wait, or that had most at the last look at all.
  std::string with_most_ GUARDED_BY(mu_);
  std::set<std::string> with_free_place_ GUARDED_BY(mu_);      // sources, by Proved()
  size_t waiting_ GUARDED_BY(mu_) = 0;                         // connections of all sources
  absl::Time look_at_ GUARDED_BY(mu_) = absl::InfinitePast();  // the next look at them
  absl::Time forgot_ GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Time reported_ GUARDED_BY(mu_) = absl::InfinitePast();  // the last event
};

}  // namespace penstock
