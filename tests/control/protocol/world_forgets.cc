// SPDX-License-Identifier: Apache-2.0
// Clients that forget workers. A client knows where the partitions are, or were at some earlier
// time. It forgets a worker that has no partition, and with it what it would have to tell the
// worker on a new link, as `WorkerLinks` does in a session.
#include "tests/control/protocol/world.h"
#include "tests/control/protocol/world_bytes.h"

namespace penstock::protocol {

World::Known World::KnownOf(int p) const {
  const PartitionRecord& partition = record_.partitions[p];
  Known known{.g = Byte(partition.placement)};
  if (partition.worker) known.worker = static_cast<int8_t>(At(partition.worker));
  return known;
}

void World::Learn(int c) {
  for (int p = 0; p < scene_->partitions; ++p) clients_[c].known[p] = KnownOf(p);
}

void World::AddForgets(Steps& steps) const {
  for (int c = 0; c < kMaxClients; ++c) {
    const Client& client = clients_[c];
    if (!Running(c) || !client.welcomed) continue;
    bool is_news = false;
    for (int p = 0; p < scene_->partitions; ++p) is_news |= client.known[p] != KnownOf(p);
    if (is_news) steps.push_back({.kind = Step::kLearn, .client = Byte(c)});
    for (int w = 0; w < kMaxWorkers; ++w)
      if (MayForget(w, c))
        steps.push_back({.kind = Step::kForget, .worker = Byte(w), .client = Byte(c)});
  }
}

// A client forgets no worker to which it has a link.
bool World::MayForget(int w, int c) const {
  const Worker& worker = workers_[w];
  if (!worker.link_broken[c]) return false;
  bool has_some = false;
  for (int p = 0; p < scene_->partitions; ++p) {
    const Known& known = clients_[c].known[p];
    if (known.worker == w) return false;
    const Received& received = worker.received[c][p];
    if (received.indices == 0) continue;
    has_some = true;
    if (!MayForgetReceives(Placement(received.g), {Placement(known.g), known.worker >= 0},
                           scene_->broken))
      return false;
  }
  return has_some;
}

void World::NoteReceived(int w, int c, const Wire& wire) {
  if (!scene_->budget.forgets) return;
  Received& received = workers_[w].received[c][wire.p];
  if (received.g != wire.g) received = {wire.g, 0};
  received.indices = Byte(received.indices | 1u << wire.a);
}

IndexSet World::NamedOnDial(int w, int c, int p) const {
  if (!scene_->budget.forgets)
    return Set(IndicesOf(c, p, Mask(clients_[c].receivers[p].AllIndices())));
  const Received& received = workers_[w].received[c][p];
  const bool counts = Byte(workers_[w].senders[p]->placement()) == received.g;
  return counts ? Set(received.indices) : IndexSet();
}

// Drops what no step depends on any more.
void World::ClearReceived() {
  if (!scene_->budget.forgets) return;
  for (int c = 0; c < kMaxClients; ++c) {
    Client& client = clients_[c];
    if (!left_.forgets || client.process != Process::kRunning) client.known = {};
    for (Worker& worker : workers_)
      if (client.process != Process::kRunning || (!left_.broken_links && !worker.link_broken[c]))
        worker.received[c] = {};
  }
}

}  // namespace penstock::protocol
