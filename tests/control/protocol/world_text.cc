// SPDX-License-Identifier: Apache-2.0
// Describes the world as text, to explain a fault.
#include "absl/strings/str_cat.h"
#include "tests/control/protocol/world.h"
#include "tests/control/protocol/world_bytes.h"

namespace penstock::protocol {

std::string ToString(const Step& step) {
  static constexpr const char* kNames[] = {"to worker",
                                           "from worker",
                                           "to client",
                                           "from client",
                                           "receive",
                                           "send",
                                           "take",
                                           "hand",
                                           "write",
                                           "commit",
                                           "dial",
                                           "assign",
                                           "declare dead",
                                           "restart",
                                           "follow",
                                           "waits",
                                           "turns",
                                           "turns worker",
                                           "left by client",
                                           "left by worker",
                                           "lose worker",
                                           "late restart",
                                           "stop worker",
                                           "kill client",
                                           "break link",
                                           "restart dispatcher",
                                           "move",
                                           "learn",
                                           "forget",
                                           "admit",
                                           "client joins",
                                           "worker joins",
                                           "leave",
                                           "copy",
                                           "begin from the copy",
                                           "begin empty",
                                           "begin beside",
                                           "returns",
                                           "returns worker",
                                           "declare split"};
  return absl::StrCat(kNames[step.kind], " worker ", step.worker + 1, " client ", step.client + 1,
                      " partition ", step.partition + 1, " index ", int{step.index},
                      step.old ? " old" : "");
}

std::string World::ToString() const {
  std::string text;
  if (older_)
    absl::StrAppend(&text, "older ", hung_ ? "hung" : "", older_->failed ? "failed" : "", " g ",
                    older_->record.partitions[0].placement.value(), " worker ",
                    older_->record.partitions[0].worker.value(), "\n");
  for (int p = 0; p < scene_->partitions; ++p)
    absl::StrAppend(&text, "partition ", p + 1, " g ", record_.partitions[p].placement.value(),
                    " worker ", record_.partitions[p].worker.value(),
                    context_.partitions[p].ended ? " ended" : "", record_.closed ? " closed" : "",
                    "\n");
  for (int c = 0; c < kMaxClients; ++c) {
    const Client& client = clients_[c];
    if (client.process == Process::kAbsent) continue;
    absl::StrAppend(&text, "client ", c + 1, " process ", static_cast<int>(client.process),
                    client.welcomed ? " welcomed" : "", client.end ? " end" : "",
                    client.with_old ? " with the older" : "", " life ", int{LifeOf(client)}, " in ",
                    client.in.size(), " out ", client.out.size());
    for (const Receiver& receiver : client.receivers)
      absl::StrAppend(&text, " | lowest ", receiver.lowest().value(), " delivered ",
                      receiver.delivered().ToString(), " received ",
                      receiver.received().ToString());
    if (const ReaderRecord* reader = ReaderOf(c))
      absl::StrAppend(&text, " | status ", static_cast<int>(reader->status), " committed ",
                      Of(reader->committed, Partition(0)).ToString(),
                      reader->end_notified ? " told end" : "");
    text += "\n";
  }
  for (int w = 0; w < kMaxWorkers; ++w) {
    const Worker& worker = workers_[w];
    if (!worker.joined) continue;
    absl::StrAppend(&text, "worker ", w + 1, worker.lost ? " lost" : "",
                    worker.with_old ? " with the older" : "", " life ", int{LifeOf(worker)}, " in ",
                    worker.in.size(), " out ", worker.out.size());
    for (const auto& sender : worker.senders)
      if (sender)
        absl::StrAppend(&text, " | g ", sender->placement().value(), " skip ",
                        sender->skip().ToString(), " next ", sender->next(), " again ",
                        sender->again().ToString(), sender->ended() ? " ended" : "");
    text += "\n";
  }
  return text;
}

}  // namespace penstock::protocol
