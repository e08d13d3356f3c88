// SPDX-License-Identifier: Apache-2.0
// The data that the parts of the core share: the options, the peers, and the dispatcher's state.
// The core's lock guards this data, except atomics.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "control/dispatcher/core_options.h"
#include "control/dispatcher/messages/stream_writer.h"
#include "control/dispatcher/monitoring/dataset_refusals.h"
#include "control/dispatcher/monitoring/element_counts.h"
#include "control/journal/snapshot_taker.h"
#include "control/protocol/client_messages.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/protocol/heartbeat_counts.h"
#include "control/protocol/principal.h"
#include "control/state/change_log.h"
#include "control/state/state.h"

namespace penstock::control {

class Transaction;

using SessionKey = std::pair<IterationId, ClientId>;

// Counts a message from its arrival until it is handled.
class Arriving {
 public:
  explicit Arriving(std::atomic<int>& count) : count_(count) { ++count_; }
  ~Arriving() { --count_; }
  Arriving(const Arriving&) = delete;
  Arriving& operator=(const Arriving&) = delete;

 private:
  std::atomic<int>& count_;
};

// The data that heartbeats of a session use without the core's lock. The hello sets it under the
// core's lock. After that, only `renewed` and `waiting` change. Only heartbeats of the stream
// change and read these two, and the messages of a stream come one at a time.
struct HeartbeatSession {
  SessionKey key;  // none before the hello
  Incarnation incarnation;
  // Streams of sessions are numbered from 1. A session's lease, and what is known about its links,
  // belong to the stream with the last accepted hello.
  uint64_t stream = 0;
  int64_t consumer = -1;
  JobId job;
  std::string job_name;

  // A heartbeat renews the lease only once the journal has stored a record that was appended after
  // the heartbeat arrived. If another dispatcher has taken over the work_dir, this dispatcher
  // therefore cannot grant leases that last longer than the other dispatcher waits.
  uint64_t renewed = 0;  // counter of the last heartbeat that renewed the lease
  struct Beat {
    uint64_t counter = 0;      // 0: none waits
    uint64_t last_record = 0;  // sequence of the last record when the heartbeat arrived
    absl::Time since;
  } waiting;
};

// The core's lock guards the fields of ClientPeer and WorkerPeer, except atomics, `heartbeats`, and
// `caller`, which is constant.
struct ClientPeer {
  std::shared_ptr<ClientStreamWriter> writer;
  Caller caller;  // who opened the stream
  // The number of messages from this peer that wait to be handled. While there are any, the peer is
  // alive, no matter how long ago it was last heard from.
  std::atomic<int> arriving = 0;
  std::atomic<bool> at_quota = false;  // according to its last heartbeat
  HeartbeatSession heartbeats;
  IterationId iteration;  // none before its hello and after its end
  ClientId client;
  Incarnation incarnation;
  Incarnation process;
  int64_t consumer = -1;    // its number in a coordinated read
  uint64_t membership = 0;  // version of the last Membership that it was sent; 0: none yet
  uint32_t version = 0;     // of the control protocol, which both sides use
  std::string release;      // of its program; empty: it does not say
};
struct WorkerPeer {
  std::shared_ptr<WorkerStreamWriter> writer;
  Caller caller;                        // as in ClientPeer
  std::atomic<int> arriving = 0;        // as in ClientPeer
  WorkerId worker;                      // none before its hello and after its end
  std::vector<DatasetWork> work;        // according to its last heartbeat
  uint32_t version = 0;                 // as in ClientPeer
  std::string release;                  // as in ClientPeer
  std::vector<PositionVersions> reads;  // the bookmarks that it can read
};

// The connected peers, ordered by key.
template <class Key, class Peer>
class Peers {
  using Map = std::map<Key, std::shared_ptr<Peer>>;

 public:
  auto begin() const { return peers_.begin(); }
  auto end() const { return peers_.end(); }
  auto find(const Key& key) const { return peers_.find(key); }
  auto lower_bound(const Key& key) const { return peers_.lower_bound(key); }
  size_t count(const Key& key) const { return peers_.count(key); }
  bool contains(const Key& key) const { return peers_.contains(key); }
  size_t size() const { return peers_.size(); }
  bool empty() const { return peers_.empty(); }
  // Returns the peer that had the key before; null if there was none.
  std::shared_ptr<Peer> Put(const Key& key, std::shared_ptr<Peer> peer) {
    changes_.Add(key);
    return std::exchange(peers_[key], std::move(peer));
  }
  void erase(typename Map::const_iterator peer) {
    changes_.Add(peer->first);
    peers_.erase(peer);
  }
  // The keys whose peers came, went or were replaced.
  const ChangeLog<Key>& changes() const { return changes_; }

 private:
  Map peers_;
  ChangeLog<Key> changes_;
};
using Sessions = Peers<SessionKey, ClientPeer>;
using Workers = Peers<WorkerId, WorkerPeer>;

struct SharedState {
  const CoreOptions& options;
  const std::atomic<uint64_t>& durable;  // sequence of the last durable record
  State state;                           // only Transaction::Apply() changes it, once recovered
  JobTokens tokens;                      // constant once recovered
  std::map<IterationId, protocol::IterationContext> contexts;
  ElementCounts counts;                       // for the status
  DatasetRefusals refusals;                   // of the workers
  Sessions sessions;                          // connected
  Workers workers;                            // connected
  std::atomic<uint64_t> sequence = 0;         // of the last record; raised before it is appended
  LogSize since_snapshot;                     // the records since the last snapshot began
  SnapshotTaker snapshots = SnapshotTaker();  // of `state`
  ChangeLog<WorkerId> worker_changes;         // of the workers' records; none: of the format
  absl::Time refused = absl::InfinitePast();  // the time of the last event "refused"
  int64_t refused_since = 0;                  // refusals without an event, since then

  bool IsConnected(IterationId iteration) const {  // by any client
    const auto session = sessions.lower_bound({iteration, ClientId()});
    return session != sessions.end() && session->first.first == iteration;
  }
  std::vector<std::shared_ptr<ClientPeer>> SessionsOf(IterationId iteration) const {
    std::vector<std::shared_ptr<ClientPeer>> peers;
    for (auto i = sessions.lower_bound({iteration, ClientId()});
         i != sessions.end() && i->first.first == iteration; ++i) {
      peers.push_back(i->second);
    }
    return peers;
  }
};

}  // namespace penstock::control
