// SPDX-License-Identifier: Apache-2.0
#include "tests/control/protocol/world.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/control/protocol/world_bytes.h"

namespace penstock::protocol {
namespace {

void EraseIf(Channel& channel, auto moot) {
  channel.erase(std::remove_if(channel.begin(), channel.end(), moot), channel.end());
}

}  // namespace

World::World(const Scene& scene) : scene_(&scene), left_(scene.budget) {
  OpenRecord();
  for (int w = 0; w < scene.workers; ++w) workers_[w].joined = workers_[w].registered = true;
  for (int c = 0; c < scene.clients; ++c) {
    Client& client = clients_[c];
    client.process = Process::kRunning;
    client.incarnation = 1;
    if (scene.order_consumers) client.consumer = static_cast<int8_t>(c);
    for (int p = 0; p < scene.partitions; ++p)
      client.receivers.emplace_back(Partition(p), IndexSet{}, scene.broken);
    OpenStream(c);
    ArrivesFromClient(c, client.out.front());
    client.out.clear();
    ArrivesAtClient(c, client.in.front(), false);
    client.in.clear();
  }
  Tidy();
}

void World::OpenRecord() {
  record_ = {};
  record_.commit_policy = scene_->states ? CommitPolicy::kExplicit : CommitPolicy::kOnDelivery;
  record_.at_least_once = scene_->at_least_once;
  record_.order_consumers = scene_->order_consumers ? scene_->clients : 0;
  context_ = MakeIterationContext(record_, scene_->broken);
  for (int p = 0; p < scene_->partitions; ++p) Settle(OpenPartition(record_, context_));
}

// --- Immediate effects -----------------------------------------------------------

void World::Tidy() {
  if (older_ && older_->failed)  // its readers get an error
    for (Client& client : clients_)
      if (client.with_old && client.process == Process::kRunning && client.other == IsOfTwoJobs())
        client.process = Process::kGone;
  SendPending();
  Clear();
}

// A message that is sent as soon as possible and delivered late has the same effects as one that is
// sent late, so only its delivery is a step. Reports that would be delivered one after the other
// are merged into one.
void World::SendPending() {
  for (int c = 0; c < kMaxClients; ++c) {
    const Client& client = clients_[c];
    if (client.process == Process::kRunning && client.welcomed && !client.awaits_welcome)
      SendReports(c, /*complete=*/false);
  }
  for (Worker& worker : workers_) {
    for (int p = 0; p < scene_->partitions; ++p) {
      if (!worker.senders[p]) continue;
      Sender& sender = *worker.senders[p];
      auto send_bookmark = [&] {
        if (!scene_->bookmarks || sender.next() <= worker.sent_bookmark[p] ||
            sender.next() >= ElementsOf(p))
          return;
        worker.sent_bookmark[p] = Byte(sender.next());
        worker.out.push_back({.kind = Wire::kBookmark,
                              .p = Byte(p),
                              .g = Byte(sender.placement()),
                              .a = Byte(sender.next()),
                              .life = LifeOf(worker)});
      };
      send_bookmark();
      while (sender.next() < ElementsOf(p) && !sender.Wants(sender.next())) {
        sender.OnPassed(sender.next());
        send_bookmark();
      }
      if (sender.next() == ElementsOf(p) && !sender.end()) sender.OnEnd(ElementsOf(p));
      if (sender.ended() && !worker.sent_end[p]) {
        worker.sent_end[p] = true;
        worker.out.push_back({.kind = Wire::kEnded,
                              .p = Byte(p),
                              .g = Byte(sender.placement()),
                              .life = LifeOf(worker)});
      }
    }
  }
}

// `complete`: the client says then that it has reported all it has.
void World::SendReports(int c, bool complete) {
  Client& client = clients_[c];
  for (int p = 0; p < scene_->partitions; ++p) {
    Receiver& receiver = client.receivers[p];
    const bool unnamed = ReportsAll(c) && !(client.named >> p & 1);
    if (unnamed && receiver.AllIndices().empty()) continue;
    auto news = receiver.News();
    if (!news) continue;
    client.named |= Byte(1 << p);
    const Wire report = ReportWire(client, *news);
    if (!client.out.empty() && !news->whole && client.out.back().kind == Wire::kReport &&
        client.out.back().p == report.p && client.out.back().g == report.g) {
      client.out.back().m[0] |= report.m[0];
      client.out.back().m[1] = Byte((client.out.back().m[1] | report.m[1]) & ~report.m[0]);
      client.out.back().handed = Byte((client.out.back().handed | report.handed) & ~report.m[0]);
    } else {
      client.out.push_back(report);
    }
  }
  if (complete) client.out.push_back({.kind = Wire::kComplete, .a = client.incarnation});
}

void World::Clear() {
  ClearReceived();
  const bool strict =
      scene_->broken == Broken::kAcceptOldPlacements || scene_->broken == Broken::kSendToTheDead;
  Masks lowest = {};  // that any linked client still accepts
  for (int p = 0; p < scene_->partitions; ++p) {
    lowest[p] = Byte(record_.partitions[p].placement);
    if (older_) lowest[p] = std::min(lowest[p], Byte(older_->record.partitions[p].placement));
    for (const Client& client : clients_)
      if (client.process == Process::kRunning && client.welcomed)
        lowest[p] = std::min(lowest[p], Byte(client.receivers[p].lowest()));
  }
  if (OlderIsDone()) {
    for (Client& client : clients_) (client.with_old ? client.out : client.left).clear();
    for (Worker& worker : workers_) (worker.with_old ? worker.out : worker.left).clear();
  }
  for (int c = 0; c < kMaxClients; ++c) {
    Client& client = clients_[c];
    if (client.process == Process::kDown || client.process == Process::kGone) {
      client.in.clear();
      client.receivers.clear();
      client.end = client.commit_pending = false;
      if (client.process == Process::kGone) {
        if (!older_) client.out.clear();
        client.written = client.committed = {};
      }
      for (Worker& worker : workers_) worker.links[c].clear();
    }
    for (Worker& worker : workers_)
      EraseIf(worker.links[c], [&](const Wire& wire) {
        return client.process != Process::kRunning || client.incarnation != wire.b ||
               (!strict && Byte(client.receivers[wire.p].lowest()) > wire.g);
      });
  }
  for (Worker& worker : workers_) {
    const auto clear = [&](Channel& channel, const IterationRecord& to) {
      EraseIf(channel, [&](const Wire& wire) {
        const uint8_t placement = Byte(to.partitions[wire.p].placement);
        return wire.kind != Wire::kRegisters && (older_ ? wire.g < placement : wire.g != placement);
      });
    };
    clear(worker.out, worker.with_old ? older_->record : record_);
    if (older_) clear(worker.left, worker.with_old ? record_ : older_->record);
    while (!worker.in.empty()) {
      const Wire& head = worker.in.front();
      const std::optional<Sender>& sender = worker.senders[head.p];
      if (head.kind == Wire::kAnother) break;
      const bool moot = head.kind == Wire::kAssign ? head.g < lowest[head.p] && !strict
                                                   : !sender || Byte(sender->placement()) != head.g;
      if (!moot) break;
      worker.in.erase(worker.in.begin());
    }
    for (int p = 0; p < scene_->partitions; ++p) {
      std::optional<Sender>& sender = worker.senders[p];
      if (!sender) continue;
      if (Byte(sender->placement()) < lowest[p] && !strict) {
        sender.reset();
        worker.sent_end[p] = false;
        worker.sent_bookmark[p] = 0;
        continue;
      }
      if (left_.broken_links) continue;
      for (const Sender::Served& served : sender->readers())
        if (served.linked && !served.unconfirmed.empty())
          sender->OnReceived(served.reader.client, IndexSet(served.unconfirmed));
    }
  }
}

// --- Checks ----------------------------------------------------------------------

const ReaderRecord* World::ReaderOf(int c) const {
  auto found = record_.FindReader(ClientName(c));
  return found ? &record_.readers[*found] : nullptr;
}

// A living client's history is what it took; that of a client that went is what it committed. The
// history of a process that is down is its written state, until it is declared dead.
World::Masks World::HistoryOf(int c) const {
  const ReaderRecord* reader = ReaderOf(c);
  const Client& client = clients_[c];
  Masks history = {};
  if (reader && (reader->status != ReaderStatus::kActive || client.process == Process::kGone)) {
    history = MasksOf<Masks>(reader->committed);
  } else if (client.process == Process::kDown || client.process == Process::kLeaving) {
    history = client.written;
  } else {
    for (size_t p = 0; p < client.receivers.size(); ++p)
      history[p] = Mask(client.receivers[p].delivered());
  }
  for (int p = 0; p < scene_->partitions; ++p) history[p] = IndicesOf(c, p, history[p]);
  return history;
}

std::string World::Fault() const {
  if (replays_what_is_gone_) return "lost: a replay begins below what was retired";
  if (served_by_old_) return "old: who heard the newer life is heard by the older one";
  if (took_when_dead_) return "delivered: to a client that was declared dead";
  // Two dispatchers that both go on give elements out twice; that is fine if all end or get an
  // error.
  if (older_ && scene_->beside == Beside::kCopy && !Done()) return "";
  std::string fault = FaultOfOne();
  if (!fault.empty() || !older_ || !IsOfTwoJobs()) return fault;
  World older = *this;
  older.Exchange();
  return older.FaultOfOne();
}

std::string World::FaultOfOne() const {
  bool limbo = false;  // some history is still undecided
  Masks histories = {};
  Masks received = {};
  for (int c = 0; c < kMaxClients; ++c) {
    const Client& client = clients_[c];
    if (client.process == Process::kAbsent || !IsOf(client)) continue;
    const ReaderRecord* reader = ReaderOf(c);
    const bool active = reader && reader->status == ReaderStatus::kActive;
    limbo |= client.process == Process::kLeaving ||
             (client.process == Process::kDown && active && !record_.finished) ||
             (client.process == Process::kRunning && !client.welcomed);
    const Masks history = HistoryOf(c);
    for (int p = 0; p < scene_->partitions; ++p) {
      if ((histories[p] & history[p]) && !scene_->at_least_once)
        return absl::StrCat("doubled: partition ", p + 1, " indices ",
                            Set(histories[p] & history[p]).ToString(), " in two histories");
      histories[p] |= history[p];
      if (client.process == Process::kRunning && client.welcomed && reader) {
        const unsigned committed = Mask(Of(reader->committed, Partition(p)));
        if (committed & ~unsigned{Mask(client.receivers[p].delivered())})
          return absl::StrCat("lost: partition ", p + 1, " indices ",
                              Set(Byte(committed)).ToString(),
                              " are committed, and not all delivered");
      }
      if (active && client.process == Process::kRunning)
        received[p] |= record_.shared() && !scene_->at_least_once
                           ? Mask(client.receivers[p].handed())
                           : IndicesOf(c, p, Mask(client.receivers[p].received()));
    }
  }
  if (!record_.closed || limbo || failed_) return "";
  for (int p = 0; p < scene_->partitions; ++p) {
    const unsigned missing =
        ((1u << ElementsOf(p)) - 1) & ~unsigned(histories[p] | received[p] | excused_[p]);
    if (missing)
      return absl::StrCat("lost: partition ", p + 1, " indices ", Set(Byte(missing)).ToString(),
                          " in no history at closing");
  }
  return "";
}

bool World::Done() const {
  if (!IsDone()) return false;
  if (!older_ || !IsOfTwoJobs()) return true;
  World older = *this;
  older.Exchange();
  return older.IsDone();
}

bool World::IsDone() const {
  if (failed_) return true;
  for (int c = 0; c < kMaxClients; ++c) {
    const Client& client = clients_[c];
    if (older_ && !IsOf(client)) continue;
    const ReaderRecord* reader = ReaderOf(c);
    switch (client.process) {
      case Process::kAbsent:
      case Process::kGone:
        break;
      case Process::kDown:
        if (reader && reader->status == ReaderStatus::kActive && !record_.finished) return false;
        break;
      case Process::kLeaving:
        return false;
      case Process::kRunning:
        if (!client.welcomed || !client.end || client.with_old != acts_old_) return false;
        for (const Receiver& receiver : client.receivers)
          if (!receiver.received().empty()) return false;
    }
  }
  return true;
}

}  // namespace penstock::protocol
