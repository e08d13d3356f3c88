// SPDX-License-Identifier: Apache-2.0
// A small world around the protocol's machines: a dispatcher (record and context),
// workers (senders) and clients (receivers), joined by FIFO channels, with a
// budget of failures. The machines are those of control/protocol; this file adds
// their surroundings in the program: processes, streams, links, and the order in
// which they act.
//
// A world is a value: a step makes the next one. tests/control/protocol/explore.h
// visits all of them.
//
// Two dispatchers may be alive at once (Scene::beside): a newer life, and the older one with the
// processes that have not turned to the newer. The world's members are the newer dispatcher's,
// except while the older one acts (Older).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "control/protocol/coordinator/iteration_coordinator.h"
#include "control/protocol/lives.h"
#include "control/protocol/queues/order_queue.h"
#include "control/protocol/receiver.h"
#include "control/protocol/sender.h"

namespace penstock::protocol {

inline constexpr int kMaxPartitions = 2;
inline constexpr int kMaxWorkers = 3;
inline constexpr int kMaxClients = 3;
inline constexpr int kMaxElements = 8;  // in a partition

// How often each failure or unrequested event may happen at most.
struct Budget {
  uint8_t worker_stops = 0;  // declared dead while running; goes on with what it has
  uint8_t client_deaths = 0;
  uint8_t dispatcher_restarts = 0;
  uint8_t broken_links = 0;
  uint8_t forgets = 0;  // a client forgets a worker that, as it knows, has no partition
  uint8_t moves = 0;    // planned: drain, balance
  uint8_t client_joins = 0;
  uint8_t worker_joins = 0;
  uint8_t leaves = 0;
  uint8_t waits = 0;         // sent by a client that has nothing to take
  uint8_t old_copies = 0;    // the dispatcher restarts from a copy of its record
  uint8_t empty_starts = 0;  // … without any record: another job has this one's numbers
  uint8_t second_lives = 0;  // another dispatcher begins, as Scene::beside says
  uint8_t returns = 0;       // of a client or worker to the older of two dispatchers
  uint8_t split_deaths = 0;  // one of two dispatchers declares dead a client that is with the other
  uint8_t admissions = 0;    // of a client to the readers of an assigned partition
};

// The journal with which a dispatcher begins while the earlier one is alive.
enum class Beside : uint8_t {
  kNothing,  // there is only one at a time
  // The other's folder, of which the other has lost the lock. Records that the other appends from
  // then on are not durable, so it sends no message that depends on them, nor any later one.
  kTakenOver,
  kCopy,   // a copy of the folder, current or old: both go on
  kEmpty,  // no journal: both go on, and another job has this one's numbers
};

struct Scene {
  int elements = 2;  // of each partition
  int lacks = 0;     // how many fewer there are in the last partition
  int partitions = 1;
  int workers = 2;  // from the start
  int clients = 2;
  bool states = false;     // ack_mode = on_commit: clients write, commit and restart from states
  bool bookmarks = false;  // workers send positions; replays start there
  bool at_least_once = false;  // elements may be in two histories
  bool audiences = false;      // each assignment names some of the readers
  // The clients, as a mask, that report all they have, so that their Welcome names only some of the
  // partitions (rule 33).
  uint8_t report_all = 0;
  // Order kDeterministic: each client is a consumer with room for one element of each partition,
  // and another follows one that is gone.
  bool order_consumers = false;
  // The nodes after Distribute: none; nodes that return the elements they hold in any order at any
  // time; or only once they have got the end, as a large shuffle does.
  enum Behind : uint8_t { kNothing, kSomeNodes, kUntilTheEnd } behind = kNothing;
  bool idle = false;  // the first client takes nothing, and gets nothing once it gave that back
  Beside beside = Beside::kNothing;
  Budget budget;
  Broken broken = Broken::kNone;
};

// A message on a channel of the model. Sets are bit masks, so that a world is small.
struct Wire {
  enum Kind : uint8_t {
    // client → dispatcher
    kConnect,   // a: incarnation, b: names a state + kReportsAll, m: the state
    kReport,    // p, g, a: incarnation + kWhole; b: returned, m[0] delivered, [1] received, handed
    kCommit,    // a: incarnation, m: committed
    kLeave,     // a: incarnation, m: delivered
    kWaits,     // a: incarnation
    kComplete,  // a: incarnation
    // dispatcher → client
    kWelcome,  // m: placements, a: of some partitions only
    kFence,    // p, g, a: asks for undelivered elements
    kEnd,
    kCommitDone,
    kLeaveDone,
    kRefused,
    // dispatcher → worker
    kAssign,     // p, g, a: bookmark, m[0]: skip, m[1], b: readers
    kAddReader,  // p, g, a: client, b: incarnation
    kUnassign,   // p, g
    kAnother,    // the dispatcher has another journal
    // worker → dispatcher
    kRegisters,  // m: placements held
    kEnded,      // p, g
    kBookmark,   // p, g, a: index
    // worker → client
    kElement,  // p, g, a: index, b: incarnation of the link
  };
  static constexpr uint8_t kWhole = 0x80;  // added to the incarnation
  static constexpr uint8_t kReportsAll = 2;
  // `life` describes the journal of the sender or of the message.
  static constexpr uint8_t kBeyond =
      1;  // to it: depends on what the copy lacks; from it: it heard that
  static constexpr uint8_t kOther = 2;  // of another journal
  static constexpr uint8_t kNewer = 4;  // of the newer of two lives; to one: sender heard of that
  Kind kind;
  uint8_t p = 0;  // from 0
  uint8_t g = 0;
  uint8_t a = 0;
  uint8_t b = 0;
  uint8_t life = 0;
  uint8_t handed = 0;
  std::array<uint8_t, kMaxPartitions> m = {};
  friend bool operator==(const Wire&, const Wire&) = default;
};
using Channel = absl::InlinedVector<Wire, 3>;

struct Step {
  enum Kind : uint8_t {
    kToWorker,
    kFromWorker,
    kToClient,
    kFromClient,  // the head of a channel arrives; to a client, index 1: it gives back
    kElement,     // worker, client: the head of a link is received or dropped
    kSend,        // worker, client, partition
    kTake,        // client, partition, index
    kHand,        // client, partition, index: to nodes after Distribute
    kWrite,
    kCommit,  // client
    kDial,    // worker, client: a new link for a broken one
    kAssign,  // worker, partition, index: the policy chose; with audiences, a mask of readers
    kDeclareDead,
    kRestart,  // client
    kFollow,   // client, index: as the consumer of that number
    kWaits,    // client
    // With two dispatchers; `old`: the older one acts.
    kTurn,        // client: to the newer one
    kTurnWorker,  // worker
    kLeftClient,  // client: the head of its messages to the earlier dispatcher arrives
    kLeftWorker,  // worker
    kLoseWorker,  // worker, which is with the other dispatcher
    // Optional, the end is reached without them:
    kLateRestart,
    kStopWorker,
    kKillClient,
    kBreakLink,
    kRestartDispatcher,
    kMove,
    kLearn,   // client: where the partitions are
    kForget,  // worker, client
    kAdmit,   // partition, index: position of the reader
    kJoinClient,
    kJoinWorker,
    kLeave,
    kCopy,
    kBeginFromCopy,
    kBeginEmpty,
    kBeginBeside,
    kReturn,  // client: to the older dispatcher
    kReturnWorker,
    kDeclareSplit,  // client: declared dead by the dispatcher that it is not with
  };
  Kind kind;
  uint8_t worker = 0;
  uint8_t client = 0;
  uint8_t partition = 0;
  uint8_t index = 0;
  bool old = false;
  bool normal() const { return kind < kLateRestart; }
};
using Steps = absl::InlinedVector<Step, 32>;
std::string ToString(const Step& step);

class World {
 public:
  explicit World(const Scene& scene);

  // Appends all steps that are possible next.
  void Next(Steps& steps) const;
  void Take(const Step& step);
  // True if all living processes have got the end, or none is alive.
  bool Done() const;
  // Returns the fault in this state: "doubled …", "lost …"; empty if there is none.
  std::string Fault() const;
  // Writes the state as bytes, up to renaming of workers and clients and without what can no longer
  // matter. Returns the number of bytes written.
  size_t Pack(uint8_t* bytes) const;
  static constexpr size_t kMaxPacked = 2048;
  std::string ToString() const;

 private:
  enum class Process : uint8_t { kAbsent, kRunning, kLeaving, kDown, kGone };
  using Masks = std::array<uint8_t, kMaxPartitions>;

  // The partition as a client knows it.
  struct Known {
    uint8_t g = 0;
    int8_t worker = -1;
    friend bool operator==(const Known&, const Known&) = default;
  };
  // The elements that a client has from links to a worker, under the last placement.
  struct Received {
    uint8_t g = 0;
    uint8_t indices = 0;
  };
  struct Client {
    Process process = Process::kAbsent;
    uint8_t incarnation = 0;
    int8_t consumer = -1;
    Masks passed = {};  // rows: given with its Welcome
    bool welcomed = false;
    bool end = false;
    bool commit_pending = false;
    bool from_state = false;    // presents it until welcomed
    bool gave_back = false;     // and is idle
    bool beyond = false;        // it heard records that the copy lacks
    bool wrote_beyond = false;  // `beyond` when it wrote its state
    bool other = false;         // it reads the job that had these numbers before
    bool with_old = false;      // its stream is the older dispatcher's
    bool newer = false;         // it heard the newer life
    bool lapsed = false;        // its lease has run out
    // Of a client that reports all it has: its new stream has brought no Welcome yet; the
    // partitions, as a mask, that its Welcome named or that it has reported since.
    bool awaits_welcome = false;
    uint8_t named = 0;
    Masks written = {};
    Masks committed = {};                          // in the last request
    std::array<Known, kMaxPartitions> known = {};  // kept while clients may forget workers
    absl::InlinedVector<Receiver, 1> receivers;
    Channel in;    // from the dispatcher
    Channel out;   // to it
    Channel left;  // to the earlier dispatcher
  };
  struct Worker {
    bool joined = false;
    bool lost = false;        // declared dead; runs on
    bool registered = false;  // the dispatcher knows its stream
    bool beyond = false;      // as in Client
    bool other = false;       // its senders are of that job
    bool with_old = false;
    bool newer = false;
    std::array<std::optional<Sender>, kMaxPartitions> senders;
    std::array<bool, kMaxPartitions> sent_end = {};
    std::array<uint8_t, kMaxPartitions> sent_bookmark = {};
    Channel in;
    Channel out;
    Channel left;
    std::array<Channel, kMaxClients> links;
    std::array<bool, kMaxClients> link_broken = {};
    std::array<std::array<Received, kMaxPartitions>, kMaxClients> received = {};  // as `known`
  };

  // One of two dispatchers.
  struct Dispatcher {
    IterationRecord record;
    IterationContext context;
    Masks excused = {};
    Masks retired = {};
    bool changed = false;
    bool failed = false;
    bool hung = false;  // waits for its journal
  };
  // While this lives, the world's dispatcher is the older one if `old`.
  class Older {
   public:
    Older(World& world, bool old);
    ~Older();

   private:
    World* const world_;
  };
  void Exchange();
  // The older one neither sends nor receives any more.
  bool OlderIsDone() const { return older_ && (hung_ || older_->failed); }
  bool IsFrozen() const { return acts_old_ && scene_->beside == Beside::kTakenOver; }

  // The dispatcher.
  void Settle(Decision decision);
  void Post(const Message& message);
  void ArrivesFromClient(int c, const Wire& wire);
  void ArrivesFromWorker(int w, const Wire& wire);
  void DeclareDead(int c);
  void NoteWhatNobodyCanRead();
  void ExcuseNothingOf(int c);
  // Clients and workers.
  void ArrivesAtClient(int c, const Wire& wire, bool gives_back);
  void ArrivesAtWorker(int w, const Wire& wire);
  static Wire ReportWire(const Client& client, const Report& report);
  void ReceiveElement(int w, int c, const Wire& wire);
  void OpenStream(int c);
  void Restart(int c);
  void RestartDispatcher();
  void BeginFromCopy();
  void BeginEmpty();
  void OpenRecord();
  control::Origin OriginOf(uint8_t life) const;
  bool IsForeign(uint8_t life) const;
  bool HearsNewer(uint8_t life) const;
  void FailJob();
  bool IsClientRefused(int c, const Wire& wire);
  bool IsWorkerRefused(int w, const Wire& wire);
  // Encodes what a client or worker says that it heard.
  static uint8_t LifeOf(const auto& its) {
    return static_cast<uint8_t>((its.beyond ? Wire::kBeyond : 0) | (its.other ? Wire::kOther : 0) |
                                (its.newer ? Wire::kNewer : 0));
  }
  // Two dispatchers.
  void BeginBeside();
  void ReopenStream(int c);
  void Register(int w);
  void Turn(int c);
  void TurnWorker(int w);
  void AddStepsOfTwo(Steps& steps) const;
  bool IsOfTwoJobs() const { return scene_->beside == Beside::kEmpty; }
  bool IsOf(const Client& client) const;  // of the job of the acting dispatcher
  std::string FaultOfOne() const;
  bool IsDone() const;
  void ConnectLinks(int w, int p);
  // Clients that forget workers (world_forgets.cc).
  Known KnownOf(int p) const;
  void AddForgets(Steps& steps) const;
  bool MayForget(int w, int c) const;
  void Learn(int c);
  void NoteReceived(int w, int c, const Wire& wire);
  IndexSet NamedOnDial(int w, int c, int p) const;  // by the first message of the new link
  void ClearReceived();
  // Does what happens at once: puts the next due message on its channel, and clears what can have
  // no effect any more.
  void Tidy();
  void SendPending();
  void SendReports(int c, bool complete);
  bool ReportsAll(int c) const { return scene_->report_all >> c & 1; }
  void Clear();
  bool Running(int c) const { return clients_[c].process == Process::kRunning; }
  const ReaderRecord* ReaderOf(int c) const;
  Masks HistoryOf(int c) const;  // indices
  int ElementsOf(int p) const {
    return p + 1 == scene_->partitions ? scene_->elements - scene_->lacks : scene_->elements;
  }
  // Returns the client's rows as indices; they are the same without consumers of an order.
  uint8_t IndicesOf(int c, int p, uint8_t rows) const;
  uint8_t RowOf(int index) const;
  OrderQueue QueueOf(int c) const;
  bool HasRoom(int p, int index) const;
  bool IsIdle(int c) const { return scene_->idle && c == 0; }
  bool MayWait(int c) const;
  bool HasReceived(int c) const;  // and not handed to nodes
  void AddTakes(int c, Steps& steps) const;
  void AddFollowers(Steps& steps) const;
  void AddAssignments(Steps& steps) const;
  void Place(int w, PartitionId partition, uint8_t audience);
  size_t PackClient(int c, uint8_t* bytes) const;
  uint8_t* PutReader(int c, const IterationRecord& record, const IterationContext& context,
                     uint8_t* at) const;
  uint8_t* PutCopied(int c, uint8_t* at) const;
  size_t PackWorker(int w, const std::array<uint8_t, kMaxClients>& order, uint8_t* bytes) const;

  const Scene* scene_;  // outlives the world
  Budget left_;
  IterationRecord record_;
  IterationContext context_;
  std::array<Client, kMaxClients> clients_;
  std::array<Worker, kMaxWorkers> workers_;
  Masks excused_ = {};  // undelivered after closing, under states, when nobody could read
  Masks retired_ = {};  // nothing lower can be replayed any more
  bool replays_what_is_gone_ = false;
  struct Copy {
    IterationRecord record;
    Masks retired = {};
  };
  std::optional<Copy> copy_;  // of an earlier record
  bool changed_ = false;      // since the copy
  bool failed_ = false;       // the job ended with an error: its journal lacks what a process heard
  std::optional<Dispatcher> older_;
  bool acts_old_ = false;
  bool hung_ = false;           // the older one's
  bool served_by_old_ = false;  // served a process that heard the newer life
  bool took_when_dead_ = false;
};

}  // namespace penstock::protocol
