// SPDX-License-Identifier: Apache-2.0
// The world's clients and workers: messages that arrive, their starts, their links.
#include <utility>

#include "penstock/check.h"
#include "tests/control/protocol/world.h"
#include "tests/control/protocol/world_bytes.h"

namespace penstock::protocol {

// --- Clients ---------------------------------------------------------------------

void World::OpenStream(int c) {
  Client& client = clients_[c];
  client.awaits_welcome = ReportsAll(c);
  client.named = 0;
  client.out.push_back({.kind = Wire::kConnect,
                        .a = client.incarnation,
                        .b = Byte(client.from_state | (ReportsAll(c) ? Wire::kReportsAll : 0)),
                        .life = LifeOf(client),
                        .m = client.written});
  for (Receiver& receiver : client.receivers) receiver.OnConnected();
}

Wire World::ReportWire(const Client& client, const Report& report) {
  return {.kind = Wire::kReport,
          .p = Byte(At(report.partition)),
          .g = Byte(report.placement),
          .a = Byte(client.incarnation | (report.whole ? Wire::kWhole : 0)),
          .b = Mask(report.returned),
          .handed = Mask(report.handed),
          .m = {Mask(report.delivered), Mask(report.received)}};
}

void World::Restart(int c) {
  Client& client = clients_[c];
  client.process = Process::kRunning;
  ++client.incarnation;
  client.welcomed = client.end = client.commit_pending = false;
  client.from_state = true;
  client.beyond = client.wrote_beyond;
  client.committed = client.written;  // it asks to commit a new state
  for (Worker& worker : workers_) {
    worker.link_broken[c] = false;
    worker.received[c] = {};
  }
  client.receivers.clear();
  for (int p = 0; p < scene_->partitions; ++p)
    client.receivers.emplace_back(Partition(p), Set(client.written[p]), scene_->broken);
  OpenStream(c);
}

void World::ArrivesAtClient(int c, const Wire& wire, bool gives_back) {
  Client& client = clients_[c];
  client.beyond |= (wire.life & Wire::kBeyond) != 0;
  client.newer |= (wire.life & Wire::kNewer) != 0;
  if (wire.kind == Wire::kLeaveDone || wire.kind == Wire::kRefused) {
    client.process = Process::kGone;
    return;
  }
  if (client.process == Process::kLeaving) return;
  switch (wire.kind) {
    case Wire::kWelcome: {
      for (int p = 0; p < scene_->partitions; ++p) {
        if (wire.m[p] == 0) continue;
        client.receivers[p].OnWelcome(Placement(wire.m[p]));
        client.named |= Byte(1 << p);
      }
      client.lapsed = false;
      const bool first = !std::exchange(client.welcomed, true);
      if (std::exchange(client.awaits_welcome, false)) SendReports(c, wire.a != 0);
      if (!first) return;
      client.from_state = false;
      for (int w = 0; w < kMaxWorkers; ++w)
        for (int p = 0; p < scene_->partitions; ++p) ConnectLinks(w, p);
      return;
    }
    case Wire::kFence: {
      Receiver& receiver = client.receivers[wire.p];
      client.named |= Byte(1 << wire.p);
      IndexSet returns = gives_back ? receiver.received() : IndexSet();
      returns.Remove(receiver.handed());
      client.out.push_back(ReportWire(client, receiver.OnFence(Placement(wire.g), returns)));
      client.gave_back |= gives_back && IsIdle(c);
      return;
    }
    case Wire::kEnd:
      client.end = true;
      return;
    case Wire::kCommitDone:
      client.commit_pending = false;
      return;
    default:
      PENSTOCK_CHECK(false);
  }
}

void World::ReceiveElement(int w, int c, const Wire& wire) {
  Client& client = clients_[c];
  if (client.process != Process::kRunning || client.incarnation != wire.b) return;
  const ReceiveResult result = client.receivers[wire.p].OnElement(Placement(wire.g), RowOf(wire.a));
  if (result != ReceiveResult::kOldPlacement) NoteReceived(w, c, wire);
}

// --- Workers ---------------------------------------------------------------------

void World::ArrivesAtWorker(int w, const Wire& wire) {
  Worker& worker = workers_[w];
  worker.beyond |= (wire.life & Wire::kBeyond) != 0;
  worker.newer |= (wire.life & Wire::kNewer) != 0;
  if (wire.kind == Wire::kAnother) {
    worker.senders = {};
    worker.other = worker.with_old;
    worker.beyond = worker.newer = false;
    return;
  }
  std::optional<Sender>& sender = worker.senders[wire.p];
  const bool current = sender && Byte(sender->placement()) == wire.g;
  switch (wire.kind) {
    case Wire::kAssign: {
      if (sender && Byte(sender->placement()) >= wire.g) return;
      Assign assign{.worker = WorkerName(w),
                    .partition = Partition(wire.p),
                    .placement = Placement(wire.g),
                    .skip = Set(wire.m[0]),
                    .bookmark = std::nullopt,
                    .readers = ReadersOf(wire.m[1])};
      if (wire.a) assign.bookmark = Bookmark{wire.a, {}};
      sender.emplace(assign, scene_->broken);
      worker.sent_end[wire.p] = false;
      worker.sent_bookmark[wire.p] = wire.a;
      return ConnectLinks(w, wire.p);
    }
    case Wire::kAddReader:
      if (!current) return;
      sender->OnAddReader({ClientName(wire.a), Incarnation(wire.b)});
      return ConnectLinks(w, wire.p);
    case Wire::kUnassign:
      if (current) sender.reset();
      return;
    default:
      PENSTOCK_CHECK(false);
  }
}

// Lets links that are up serve a new placement, or new readers of one.
void World::ConnectLinks(int w, int p) {
  std::optional<Sender>& sender = workers_[w].senders[p];
  if (!sender) return;
  for (int c = 0; c < kMaxClients; ++c) {
    const Client& client = clients_[c];
    if (client.other != workers_[w].other) continue;  // a link carries the job's token
    if (!client.welcomed || workers_[w].link_broken[c] || client.process == Process::kDown ||
        client.process == Process::kAbsent)
      continue;
    bool served = false;  // by this link already
    for (const Sender::Served& s : sender->readers())
      served |= s.reader.client == ClientName(c) && s.linked;
    if (!served) sender->OnLinkUp(ClientName(c), Incarnation(client.incarnation), {});
  }
}

}  // namespace penstock::protocol
