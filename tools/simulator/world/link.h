// SPDX-License-Identifier: Apache-2.0
// One connection of the simulated network: its two ends, and what is in flight between them. For
// network.cc.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <variant>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tools/simulator/engine/scheduler.h"
#include "tools/simulator/world/network.h"

namespace penstock::simulator {

// What arrives at one end is in a queue of that end. A fiber takes from the queue what has arrived,
// in order, whichever event of the scheduler started it. So the scheduler may run its events in any
// order.
//
// Used on one thread. The network keeps the link while an end goes on or has events.
class Link final : public std::enable_shared_from_this<Link> {
 public:
  enum Side : uint8_t { kClient, kServer };

  // `events`: of the client. `pinged`: the client pings the server (Network::pinged).
  Link(Network& network, uint64_t number, std::shared_ptr<Process> client,
       std::shared_ptr<ConnectionEvents> events, bool pinged);
  std::unique_ptr<Connection> NewEnd(Side side);

  // --- The beginning: call one of these ---
  // The server accepts the connection after three delays, as TCP's handshake takes. `listener`: the
  // number of the listener at `address`.
  void Reach(const std::string& address, uint64_t listener, std::shared_ptr<Process> server);
  void Refuse();   // nobody listens there
  void TimeOut();  // the path to the server is cut

  // --- Calls of the ends ---
  void Send(Side from, std::string message);
  void Close(Side side, const absl::Status& reason);
  void Stop(Side side);
  void Release(Side side);  // its Connection is gone

  // --- Faults ---
  // Resets the connection, if it is between these hosts.
  void BreakBetween(const std::string& a, const std::string& b);
  void OnKilled(const Process& process);  // if it has an end
  void OnPaused(const Process& process);
  // Ends both ends without an event. Returns the events, for the caller to destroy.
  std::array<std::shared_ptr<ConnectionEvents>, 2> Abandon();

 private:
  struct Opening {
    std::string address;
    uint64_t listener;
  };
  // A client, a message, or the end of the connection.
  using What = std::variant<Opening, std::string, absl::Status>;
  struct Arrival {
    absl::Time due;
    What what;
  };
  struct End {
    std::shared_ptr<Process> process;          // null: nobody listens
    std::shared_ptr<ConnectionEvents> events;  // null: none are called
    std::list<Arrival> arriving;               // in order of `due`
    absl::Time last_due = absl::InfinitePast();
    absl::Time ends = absl::InfiniteFuture();   // the end is over then, if nothing ends it before
    absl::Status why;                           // the reason for this
    absl::Time wakes = absl::InfiniteFuture();  // when Take() runs next
    uint64_t running = 0;                       // the fiber that runs events now; 0: none
    bool lost = false;                          // what is sent to this end is lost
    bool closed = false;                        // by its process
    bool stopped = false;
    bool over = false;  // gets no further event
  };

  absl::Time Now() const;
  bool PathIsCut() const;  // in either direction
  void Transmit(Side from, What what, int delays = 1);
  // The end gets OnClosed at `when`, unless something ends it before.
  void EndAt(Side side, absl::Time when, const absl::Status& why);
  void LoseFromNowOn(Side to);
  // If the server's process is paused after this time, the client closes the connection.
  void CheckPauseAfter(absl::Duration time);
  void LoseSome(End& end);  // of what arrives at it, from a drawn message on
  void Wake(Side side, absl::Time when);
  void Take(Side side);
  void TakeFirst(Side side);
  void Accept(const Opening& opening);
  void Finish(End& end);
  void ForgetIfOver();

  Network& network_;
  Scheduler& scheduler_;
  const uint64_t number_;
  const bool pinged_;
  std::array<End, 2> ends_;
};

}  // namespace penstock::simulator
