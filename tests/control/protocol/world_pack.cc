// SPDX-License-Identifier: Apache-2.0
// Packs the world into bytes, up to renaming of workers and clients.
#include <algorithm>
#include <cstring>

#include "penstock/check.h"
#include "tests/control/protocol/world.h"
#include "tests/control/protocol/world_bytes.h"

namespace penstock::protocol {

namespace {

uint8_t* Put(uint8_t* at, const Wire& wire) {
  static_assert(sizeof(Wire) == 7 + kMaxPartitions);
  std::memcpy(at, &wire, sizeof(Wire));
  return at + sizeof(Wire);
}

uint8_t* Put(uint8_t* at, const Channel& channel) {
  *at++ = Byte(channel.size());
  for (const Wire& wire : channel) at = Put(at, wire);
  return at;
}

uint8_t* Put(uint8_t* at, const PartitionRecord& partition, const PartitionContext& context) {
  *at++ = Byte(partition.placement);
  *at++ = Byte(partition.collecting() | context.ended.has_value() << 1 | context.gives_back << 2 |
               partition.audience.has_value() << 3 | (partition.audience && context.asks_all) << 4);
  unsigned bookmarks = 0;
  for (const Bookmark& bookmark : partition.bookmarks) bookmarks |= 1u << bookmark.index;
  *at++ = Byte(bookmarks);
  return at;
}

}  // namespace

size_t World::PackClient(int c, uint8_t* bytes) const {
  const Client& client = clients_[c];
  uint8_t* at = bytes;
  *at++ = Byte(static_cast<int>(client.process) | client.welcomed << 3 | client.end << 4 |
               client.commit_pending << 5 | client.from_state << 6 | client.gave_back << 7);
  if (scene_->budget.old_copies || scene_->budget.empty_starts || scene_->budget.second_lives)
    *at++ = Byte(client.beyond | client.wrote_beyond << 1 | client.other << 2 |
                 client.with_old << 3 | client.newer << 4 | client.lapsed << 5);
  if (copy_) at = PutCopied(c, at);
  if (client.process == Process::kAbsent) return static_cast<size_t>(at - bytes);
  *at++ = client.incarnation;
  if (scene_->order_consumers) *at++ = Byte(client.consumer);
  if (scene_->report_all)
    *at++ = Byte(client.named | client.awaits_welcome << 6 | ReportsAll(c) << 7);
  for (int p = 0; p < scene_->partitions; ++p) {
    if (scene_->states) {
      *at++ = client.written[p];
      *at++ = client.committed[p];
    }
    if (scene_->order_consumers) *at++ = client.passed[p];
    if (client.receivers.empty()) continue;
    *at++ = Byte(client.receivers[p].lowest());
    *at++ = Mask(client.receivers[p].delivered());
    *at++ = Mask(client.receivers[p].received());
    if (scene_->behind) *at++ = Mask(client.receivers[p].handed());
    if (left_.forgets) *at++ = client.known[p].g;
  }
  at = PutReader(c, record_, context_, at);
  at = Put(at, client.in);
  at = Put(at, client.out);
  if (older_) {
    if (!OlderIsDone()) at = PutReader(c, older_->record, older_->context, at);
    at = Put(at, client.left);
  }
  return static_cast<size_t>(at - bytes);
}

uint8_t* World::PutReader(int c, const IterationRecord& record, const IterationContext& context,
                          uint8_t* at) const {
  const auto found = record.FindReader(ClientName(c));
  *at++ = found.has_value();
  if (!found) return at;
  const ReaderRecord& reader = record.readers[*found];
  *at++ = Byte(static_cast<int>(reader.status) | reader.end_notified << 2 |
               context.present[*found] << 3 | context.waits[*found] << 4);
  *at++ = Byte(reader.incarnation);
  if (scene_->report_all)
    *at++ = Byte(Mask(context.readers[*found].on_stream) << 1 | context.readers[*found].completes);
  const bool context_matters = reader.reads() || scene_->broken == Broken::kCloseOnReceivedByDead;
  for (int p = 0; p < scene_->partitions; ++p) {
    *at++ = Mask(Of(reader.committed, Partition(p)));
    *at++ = Mask(Of(reader.final, Partition(p)));
    const AckState& ack = context.partitions[p].acks.Of(*found);
    if (scene_->audiences)
      *at++ = Byte(record.partitions[p].MayServe(*found) |
                   context.Knows(static_cast<size_t>(p), *found) << 1);
    if (!context_matters) continue;
    *at++ = context.HasAnswered(static_cast<size_t>(p), *found, record.partitions[p].placement);
    *at++ = Mask(ack.reported);
    if (scene_->states || scene_->behind) *at++ = Mask(ack.claimed);
  }
  return at;
}

// Packs the client's part of the copy.
uint8_t* World::PutCopied(int c, uint8_t* at) const {
  const auto found = copy_->record.FindReader(ClientName(c));
  *at++ = found.has_value();
  if (!found) return at;
  const ReaderRecord& reader = copy_->record.readers[*found];
  *at++ = Byte(static_cast<int>(reader.status) | reader.end_notified << 2 | *found << 3);
  *at++ = Byte(reader.incarnation);
  for (int p = 0; p < scene_->partitions; ++p) {
    *at++ = Mask(Of(reader.committed, Partition(p)));
    *at++ = Mask(Of(reader.final, Partition(p)));
    if (scene_->audiences)
      *at++ = Byte(copy_->record.partitions[p].MayServe(*found) |
                   copy_->record.partitions[p].audience.has_value() << 1);
  }
  return at;
}

size_t World::PackWorker(int w, const std::array<uint8_t, kMaxClients>& order,
                         uint8_t* bytes) const {
  const Worker& worker = workers_[w];
  uint8_t* at = bytes;
  *at++ = Byte(worker.joined | worker.lost << 1 | worker.registered << 2 | worker.beyond << 3 |
               worker.other << 4 | worker.with_old << 5 | worker.newer << 6);
  if (!worker.joined) return static_cast<size_t>(at - bytes);
  for (int p = 0; p < scene_->partitions; ++p) {
    *at++ = Byte((record_.partitions[p].worker == WorkerName(w)) |
                 (copy_ && copy_->record.partitions[p].worker == WorkerName(w)) << 1 |
                 (older_ && !OlderIsDone() && older_->record.partitions[p].worker == WorkerName(w))
                     << 2);
    if (!worker.senders[p]) {
      *at++ = 0;
      continue;
    }
    const Sender& sender = *worker.senders[p];
    *at++ = Byte(sender.placement());
    *at++ = Byte(sender.next());
    *at++ = Byte(worker.sent_end[p] | sender.end().has_value() << 1 | worker.sent_bookmark[p] << 2);
    // Earlier indices were sent or skipped: only the rest of `skip` matters.
    *at++ = Byte(Mask(sender.skip()) >> sender.next());
    *at++ = Mask(sender.again());
    for (uint8_t c : order) {
      uint8_t reader = 0, unconfirmed = 0;
      for (const Sender::Served& served : sender.readers()) {
        if (served.reader.client != ClientName(c)) continue;
        reader = Byte(Byte(served.reader.incarnation) << 1 | served.linked);
        unconfirmed = Mask(served.unconfirmed);
      }
      *at++ = reader;
      *at++ = unconfirmed;
    }
  }
  *at++ = Byte(worker.in.size());
  for (Wire wire : worker.in) {
    if (wire.kind == Wire::kAssign) {
      unsigned readers = 0;
      for (size_t i = 0; i < order.size(); ++i)
        readers |= (wire.m[1] >> (2 * order[i]) & 3u) << (2 * i);
      wire.m[1] = Byte(readers);
    } else if (wire.kind == Wire::kAddReader) {
      wire.a = Byte(std::find(order.begin(), order.end(), wire.a) - order.begin());
    }
    at = Put(at, wire);
  }
  at = Put(at, worker.out);
  if (older_) at = Put(at, worker.left);
  for (uint8_t c : order) {
    *at++ = Byte(worker.links[c].size() << 1 | worker.link_broken[c]);
    for (const Wire& wire : worker.links[c]) {
      *at++ = Byte(wire.g);
      *at++ = Byte(wire.p << 4 | wire.a);
    }
    if (!scene_->budget.forgets) continue;
    for (int p = 0; p < scene_->partitions; ++p) {
      *at++ = Byte(worker.received[c][p].g << 1 | (clients_[c].known[p].worker == w));
      *at++ = worker.received[c][p].indices;
    }
  }
  return static_cast<size_t>(at - bytes);
}

size_t World::Pack(uint8_t* bytes) const {
  uint8_t* at = bytes;
  std::memcpy(at, &left_, sizeof(left_));
  at += sizeof(left_);
  *at++ = Byte(record_.closed | record_.finished << 1 | copy_.has_value() << 2 | changed_ << 3 |
               failed_ << 4);
  if (copy_) {
    *at++ = Byte(copy_->record.closed | copy_->record.finished << 1);
    for (int p = 0; p < scene_->partitions; ++p) {
      *at++ = Byte(copy_->record.partitions[p].placement);
      *at++ = copy_->retired[p];
    }
  }
  for (int p = 0; p < scene_->partitions; ++p) {
    at = Put(at, record_.partitions[p], context_.partitions[p]);
    *at++ = excused_[p];
    *at++ = retired_[p];
  }
  if (older_) {
    *at++ = Byte(older_->record.closed | older_->record.finished << 1 | older_->changed << 2 |
                 older_->failed << 3 | hung_ << 4 | served_by_old_ << 5 | took_when_dead_ << 6);
    for (int p = 0; p < scene_->partitions && !OlderIsDone(); ++p) {
      at = Put(at, older_->record.partitions[p], older_->context.partitions[p]);
      *at++ = older_->excused[p];
      *at++ = older_->retired[p];
    }
  }

  constexpr size_t kBlock = 320;
  uint8_t blocks[3][kBlock];
  size_t sizes[3];
  static_assert(kMaxClients == 3 && kMaxWorkers == 3);
  auto less = [&](uint8_t a, uint8_t b) {
    if (sizes[a] != sizes[b]) return sizes[a] < sizes[b];
    return std::memcmp(blocks[a], blocks[b], sizes[a]) < 0;
  };
  auto append = [&](const std::array<uint8_t, 3>& order) {
    for (uint8_t i : order) {
      std::memcpy(at, blocks[i], sizes[i]);
      at += sizes[i];
    }
  };
  std::array<uint8_t, 3> clients = {0, 1, 2};
  for (int c = 0; c < kMaxClients; ++c) {
    sizes[c] = PackClient(c, blocks[c]);
    PENSTOCK_CHECK(sizes[c] <= kBlock);
  }
  std::sort(clients.begin(), clients.end(), less);
  append(clients);
  std::array<uint8_t, 3> workers = {0, 1, 2};
  for (int w = 0; w < kMaxWorkers; ++w) {
    sizes[w] = PackWorker(w, clients, blocks[w]);
    PENSTOCK_CHECK(sizes[w] <= kBlock);
  }
  std::sort(workers.begin(), workers.end(), less);
  append(workers);
  return static_cast<size_t>(at - bytes);
}

}  // namespace penstock::protocol
