// SPDX-License-Identifier: Apache-2.0
// The simulated network. A connection keeps the order of its messages and delivers each at most
// once, as TCP does. When it breaks, a drawn part of what is in flight is lost, and each end
// notices at a time of its own. Messages of different connections overtake each other.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tools/simulator/engine/scheduler.h"
#include "tools/simulator/world/traffic.h"

namespace penstock::simulator {

// The events of one end of a connection. They run one at a time, in order, on a fiber of the end's
// process. They may wait.
class ConnectionEvents {
 public:
  virtual ~ConnectionEvents() = default;
  virtual void OnMessage(std::string message) = 0;
  // The last event: the peer closed the connection (OK, or its reason), this end did (OK), or the
  // connection broke (Unavailable).
  virtual void OnClosed(const absl::Status& reason) = 0;
};

// One end of a connection. Destroying it closes it; no event begins after that, nor after Stop()
// has returned. Afterwards, the network does not hold the events.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual void Send(std::string message) = 0;  // never waits; dropped if the connection is over
  // The peer gets `reason` after all messages that were sent before. Messages that the peer still
  // sends are dropped.
  virtual void Close(const absl::Status& reason) = 0;
  // Ends the events of this end. Waits for a running event, unless it is called from within it.
  virtual void Stop() = 0;
};

// Accepts connections at an address, on fibers of the process that listens. Returns the events of
// its end.
using AcceptConnection =
    std::function<std::shared_ptr<ConnectionEvents>(std::shared_ptr<Connection> connection)>;

// Stops listening when it is destroyed. Open connections stay.
class Acceptor {
 public:
  virtual ~Acceptor() = default;
};

struct Weather {
  Span delay = {absl::Microseconds(50), absl::Milliseconds(2)};  // of a message, one way
  double slow = 0;                                               // chance that a message is slow
  Span slow_delay = {absl::Milliseconds(50), absl::Milliseconds(500)};
};

class Link;

// Used on one thread. Must outlive its connections and acceptors.
class Network {
 public:
  explicit Network(Scheduler& scheduler) : scheduler_(scheduler) {}
  ~Network();

  Weather weather;  // of messages that are sent from now on
  // Clients ping their connections to these hosts each second, as the product does if it knows
  // several dispatchers: they notice within 3 s that messages are lost or that the server's process
  // is paused, and try to connect for a second.
  std::set<std::string> pinged;
  // Learns what passes through ports that are opened from now on, which it outlives; null: nobody.
  TrafficObserver* observer = nullptr;

  // AlreadyExists if a living process listens there. `address`: "host:port".
  absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const std::shared_ptr<Process>& at,
                                                   const std::string& address,
                                                   AcceptConnection accept);
  // Begins a connection of the calling fiber's process, and returns at once. Messages may be sent
  // at once. OnClosed gets Unavailable if nobody listens there.
  std::unique_ptr<Connection> Connect(const std::string& address,
                                      std::shared_ptr<ConnectionEvents> events);

  // --- Faults ---
  // For `time`, drops everything that is sent from one host to another. Neither end is told; a
  // connection that lost a message breaks when its lost message would have been noticed.
  void Cut(const std::string& from, const std::string& to, absl::Duration time);
  // Breaks all connections between the two hosts.
  void Break(const std::string& a, const std::string& b);
  // Breaks the connections of a process that was killed, after a drawn time; a connection to it is
  // refused at once.
  void OnKilled(const Process& process);
  void OnPaused(const Process& process);
  bool Refuses(const std::string& address) const;  // nobody listens there

 private:
  friend class Link;
  struct Listener {
    std::shared_ptr<Process> process;
    AcceptConnection accept;
    uint64_t number = 0;
  };
  class ListeningAcceptor;

  // Returns who listens at an address; nullptr: nobody, or a process that was killed.
  const Listener* Find(const std::string& address) const;
  // Returns whether everything that is now sent from one host to another is lost.
  bool IsCut(const std::string& from, const std::string& to) const;
  absl::Duration DrawDelay();
  // The link has an end at `process`; the link is over, and had its ends at the two processes.
  void NoteEnd(uint64_t link, const Process& process);
  void Forget(uint64_t link, const Process& client, const Process* server);

  Scheduler& scheduler_;
  uint64_t last_number_ = 0;                   // of listeners and links
  std::map<std::string, Listener> listeners_;  // by address
  std::map<uint64_t, std::shared_ptr<Link>> links_;
  std::set<std::pair<uint64_t, uint64_t>> ends_;  // numbers of a process and of a link of it
  std::map<std::pair<std::string, std::string>, absl::Time> cuts_;  // until when, by hosts
};

}  // namespace penstock::simulator
