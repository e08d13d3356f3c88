// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/dataset_pieces.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/observe/metrics.h"
#include "control/observe/refused.h"
#include "control/rpc/dataset_fetcher.h"
#include "control/sync/clock.h"

namespace penstock::control {
namespace {

// If no piece of any dataset is asked for in this time, no parts are kept.
constexpr absl::Duration kKeptFor = absl::Minutes(1);

Gauge& UnderWay() {
  static Gauge& gauge = ProcessMetrics().GetGauge(
      "penstock_dispatcher_dataset_pieces",
      "Answers with a piece of a dataset that are under way and count for their limit.");
  return gauge;
}

}  // namespace

struct DatasetPieces::Lease {
  Lease(std::shared_ptr<const DatasetParts> its_parts, std::shared_ptr<Queue> its_queue,
        uint64_t its_number)
      : parts(std::move(its_parts)), queue(std::move(its_queue)), number(its_number) {}
  ~Lease() {
    MutexLock lock(queue->mu);
    queue->under_way.erase(number);
    UnderWay().Set(static_cast<int64_t>(queue->under_way.size()));
    queue->changed.NotifyAll();
  }

  const std::shared_ptr<const DatasetParts> parts;
  const std::shared_ptr<Queue> queue;
  const uint64_t number;
};

DatasetPieces::~DatasetPieces() {
  {
    MutexLock lock(queue_->mu);
    queue_->stopping = true;
    queue_->changed.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void DatasetPieces::Answer(ServerCall* call, std::shared_ptr<const DatasetRecord> dataset,
                           const wire::DatasetPieceRequest& piece) {
  absl::Status refused;
  {
    MutexLock lock(queue_->mu);
    if (queue_->waiting.size() >= limits_.waiting_dataset_pieces) {
      CountRefused(Port::kDispatcher, Refused::kTooMany);
      refused = absl::UnavailableError(
          absl::StrCat(queue_->waiting.size(),
                       " calls wait for a piece of a dataset, which is the limit. "
                       "Ask again when some have ended"));
    } else if (!thread_.joinable()) {
      absl::StatusOr<Thread> thread = StartThread("pieces of datasets", [this] { Run(); });
      refused = thread.status();
      if (thread.ok()) thread_ = *std::move(thread);
    }
    if (refused.ok()) queue_->waiting.push_back({call, std::move(dataset), piece});
    queue_->changed.NotifyAll();  // also if some of too many are cancelled meanwhile
  }
  if (!refused.ok()) call->FinishWith(refused);
}

void DatasetPieces::Run() {
  MutexLock lock(queue_->mu);
  while (AwaitNext(lock)) {
    const auto at = Next();
    const Waiting next = std::move(*at);
    queue_->waiting.erase(at);
    if (next.call->is_cancelled()) {
      lock.unlock();
      next.call->FinishIfCancelled();
      lock.lock();
      continue;
    }
    const uint64_t number = ++queue_->last;
    queue_->under_way[number] = BootTime();
    UnderWay().Set(static_cast<int64_t>(queue_->under_way.size()));
    lock.unlock();
    AnswerOne(next, number);
    lock.lock();
  }
}

std::deque<DatasetPieces::Waiting>::iterator DatasetPieces::Next() {
  std::deque<Waiting>& waiting = queue_->waiting;
  const auto cancelled =
      std::ranges::find_if(waiting, [](const Waiting& its) { return its.call->is_cancelled(); });
  const bool has_place = queue_->under_way.size() < limits_.dataset_pieces;
  return cancelled == waiting.end() && has_place ? waiting.begin() : cancelled;
}

bool DatasetPieces::AwaitNext(MutexLock& lock) {
  std::map<uint64_t, absl::Time>& under_way = queue_->under_way;
  while (true) {
    const absl::Time too_early = BootTime() - limits_.dataset_piece_time;
    while (!under_way.empty() && under_way.begin()->second <= too_early)
      under_way.erase(under_way.begin());
    if (Next() != queue_->waiting.end()) return true;
    if (queue_->stopping) return false;
    if (!queue_->waiting.empty()) {
      queue_->changed.WaitFor(lock, under_way.begin()->second - too_early);
      continue;
    }
    const bool asked = queue_->changed.WaitFor(lock, kKeptFor, [&]() REQUIRES(queue_->mu) {
      return !queue_->waiting.empty() || queue_->stopping;
    });
    if (!asked) kept_.Clear();
  }
}

void DatasetPieces::AnswerOne(const Waiting& waiting, uint64_t number) {
  const auto lease =
      std::make_shared<const Lease>(kept_.Of(waiting.dataset, BootTime()), queue_, number);
  const DatasetParts& parts = *lease->parts;
  ServerCall* const call = waiting.call;
  if (call->FinishIfCancelled()) return;
  if (waiting.piece.part() == 0) return call->FinishWith(parts.list);
  const uint64_t offset = waiting.piece.offset();
  const std::string_view content =
      waiting.piece.part() <= 2 ? parts.Content(waiting.piece.part()) : std::string_view();
  if (offset >= content.size()) {
    return call->FinishWith(absl::InvalidArgumentError(
        absl::StrCat("dataset ", parts.dataset->id, " has no piece at offset ", offset, " of part ",
                     waiting.piece.part())));
  }
  wire::GetDatasetAnswer answer;
  answer.set_dataset_id(parts.dataset->id);
  call->FinishWith(answer, wire::GetDatasetAnswer::kPieceFieldNumber,
                   {lease, content.substr(offset, kDatasetPieceBytes)}, &parts, parts.bytes());
}

}  // namespace penstock::control
