// SPDX-License-Identifier: Apache-2.0
#include "dataplane/worker/partition_runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "control/observe/fail_point.h"
#include "control/sync/mutex.h"
#include "control/sync/thread.h"
#include "dataplane/dataset/engine/replay_point.h"
#include "dataplane/dataset/engine/static_shard.h"
#include "dataplane/dataset/graph/position_versions.h"
#include "dataplane/memory/catch_exhausted.h"
#include "dataplane/memory/shared_pool.h"
#include "dataplane/worker/group_output.h"
#include "dataplane/worker/output_pool.h"
#include "include/status_macros.h"

namespace penstock::worker {
namespace {

// Returns the indices that are sent to no client. All of these indices are passed over, except
// `copied`, whose element is made for its copies.
IndexSet UnsentOf(const control::Assign& assign) {
  IndexSet unsent = assign.skip;
  if (assign.copied) unsent.Add(*assign.copied);
  return unsent;
}

// A bookmark is due in these cases: after 1,024 outputs, if the last bookmark is at least 100 ms
// old; after 5 s in any case. Thus there are at most ten bookmarks a second, so that small elements
// do not fill the dispatcher's journal. This costs little, because it makes a replay at most a
// tenth of a second longer. A dispatcher with many partitions wants fewer bookmarks, except the
// first under each placement, which tells it that the partition makes progress.
constexpr Index kOutputsPerBookmark = 1024;
constexpr absl::Duration kLongestWithoutBookmark = absl::Seconds(5);
constexpr absl::Duration kShortestBetweenBookmarks = absl::Milliseconds(100);

// The time between a transient error and the report of the error to the dispatcher, which arranges
// a retry.
constexpr absl::Duration kOneMoment = absl::Milliseconds(500);

// Returns the seed of the assigned partition. Each partition has a seed of its own, so that
// partitions that are each the whole dataset have different orders.
uint64_t SeedOf(const control::Assign& assign) {
  uint64_t mixed = assign.seed + 0x9e3779b97f4a7c15 * assign.of.partition.value();
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
  return mixed ^ (mixed >> 31);
}

// Returns the number of calls at a time of a parallel node; 0: one per core. `pool`: the job's own
// threads; nullptr: it has none.
int ThreadsOf(const WorkerContext& context, const ThreadPool* pool) {
  if (pool == nullptr) return context.threads;
  return std::min(context.threads == 0 ? Cores() : context.threads, std::max(1, pool->threads()));
}

}  // namespace

std::shared_ptr<PartitionRunner> PartitionRunner::Start(
    std::shared_ptr<WorkerContext> context, std::shared_ptr<IterationSink> iteration_sink,
    control::Assign assign) {
  std::shared_ptr<PartitionRunner> runner(
      new PartitionRunner(std::move(context), std::move(iteration_sink), std::move(assign)));
  absl::StatusOr<Thread> thread =
      StartThread(ToString(runner->of().partition), [runner] { runner->Run(); });
  if (thread.ok()) {
    thread->detach();  // AwaitDone() takes the place of a join
  } else {
    runner->End(thread.status());
  }
  return runner;
}

PartitionRunner::PartitionRunner(std::shared_ptr<WorkerContext> context,
                                 std::shared_ptr<IterationSink> iteration_sink,
                                 control::Assign assign)
    : context_(std::move(context)),
      iteration_sink_(std::move(iteration_sink)),
      assign_(std::move(assign)),
      files_(context_->files),
      permit_(context_->permits, assign_.job, assign_.terms.share),
      splits_(
          assign_.splits,
          [this](int provider, int64_t repetition, int64_t first_ordinal, int32_t wanted) {
            Say(control::SplitRequest{assign_.of, provider, repetition, first_ordinal, wanted});
          },
          [this](bool begins) {
            if (!begins) {
              permit_.Resume();
              return;
            }
            iteration_sink_->Flush();
            permit_.Pause();
          },
          context_->now),
      sink_(iteration_sink_->Open(
          {.of = assign_.of,
           .skip = UnsentOf(assign_),
           .first = assign_.bookmark_index,
           .readers = assign_.readers,
           .consumers = assign_.terms.coordinated() ? assign_.terms.num_consumers : 0,
           .group_size = assign_.terms.group_size,
           .ordered = assign_.terms.deterministic,
           .positions = assign_.positions,
           .rows = assign_.rows,
           .remainder = assign_.remainder,
           .permit = &permit_})) {}

PartitionRunner::~PartitionRunner() = default;

// --- The thread --------------------------------------------------------------------

void PartitionRunner::Run() {
  absl::Status status = Replay();
  if (const absl::Status of_the_moment = files_.error(); !status.ok() && !of_the_moment.ok()) {
    permit_.Cancel();
    AwaitAnotherMoment();
    status = of_the_moment;
  }
  End(status);
}

void PartitionRunner::End(const absl::Status& status) {
  if (!status.ok() && !stop_.stop_requested()) {
    control::PartitionFailed failed{assign_.of, status, RefusesDataset(status)};
    {
      MutexLock lock(mu_);
      failed_ = failed;
    }
    Say(std::move(failed));
  }
  permit_.Cancel();
  iteration_sink_->Close(*sink_);
  // Notifies under the lock, because a thread in AwaitDone() may have the only other handle to the
  // runner.
  MutexLock lock(mu_);
  done_ = true;
  done_changed_.NotifyAll();
}

void PartitionRunner::AwaitAnotherMoment() {
  const std::stop_callback wake(stop_.get_token(), [this] {
    MutexLock lock(mu_);
    done_changed_.NotifyAll();
  });
  MutexLock lock(mu_);
  done_changed_.WaitFor(lock, kOneMoment, [this] { return stop_.stop_requested(); });
}

absl::Status PartitionRunner::Replay() {
  ASSIGN_OR_RETURN(std::shared_ptr<const Definition> definition, Define());
  if (!permit_.Take()) return absl::CancelledError("stopped");
  const control::ShardOf& shard = assign_.shard;
  const ShardingPolicy mode = shard.count > 0 ? shard.mode : assign_.terms.mode;
  const bool divided = mode == ShardingPolicy::kDynamic || mode == ShardingPolicy::kFile;
  const bool by_hint = mode == ShardingPolicy::kHint && HasShardHint(definition->dataset);
  const bool by_element = mode == ShardingPolicy::kData;
  if (by_hint || (by_element && shard.count > 1)) {
    RETURN_IF_ERROR(CheckShardable(definition->dataset, mode));
  }
  const Dataset& dataset = definition->dataset;
  OutputPool output(*sink_, *context_->pool);
  const std::shared_ptr<BufferBudget> job_buffers = context_->job_buffers.Of(assign_.job);
  BufferAccount buffers(*job_buffers);
  std::shared_ptr<ThreadPool> job_threads = context_->job_threads.Of(assign_.job);
  RunContext context{
      .seed = divided || by_hint || by_element ? assign_.seed : SeedOf(assign_),
      .repetition = assign_.repetition,
      // In mode DATA the dataset is divided after its last node, so all partitions run the nodes
      // with one value.
      .partition = by_element ? 0 : assign_.of.partition.value(),
      .same_elsewhere = by_element,
      .hint_shards = by_hint ? shard.count : 0,
      .hint_index = shard.index,
      .splits = divided ? &splits_ : nullptr,
      .plan = divided ? &definition->plan : nullptr,
      .pool = context_->pool.get(),
      .output = &output,
      .sent_ahead = true,
      .files = &files_,
      .cache_files = &context_->access->cache_files(),
      .cache_disk = &context_->access->cache_disk(),
      .threads = ThreadsOf(*context_, job_threads.get()),
      .stop = stop_.get_token(),
      .profile = definition->profile.get(),
      .calls = job_threads.get(),
      .read_ahead = context_->read_ahead.has_value() ? &*context_->read_ahead : nullptr,
      .buffers = &buffers,
      .python = context_->python};
  ASSIGN_OR_RETURN(std::unique_ptr<NodeIterator> iterator, BuildIterator(dataset, context));
  if (by_element) iterator = ShardOfIterator(std::move(iterator), shard.count, shard.index);
  absl::StatusOr<Index> elements = Produce(*iterator, dataset);
  splits_.Cancel();  // a read-ahead thread of the iterator may wait for splits
  iterator.reset();
  job_threads.reset();
  {
    MutexLock lock(mu_);
    work_.partitions = 0;
  }
  if (!elements.ok()) return elements.status();
  if (assign_.terms.coordinated()) {
    const control::AtEnd at_end{assign_.of, *elements};
    {
      MutexLock lock(mu_);
      at_end_ = at_end;
    }
    Say(at_end);
  }
  RETURN_IF_ERROR(sink_->End(*elements));
  const control::Ended ended{assign_.of, sink_->elements()};
  {
    MutexLock lock(mu_);
    ended_ = ended;
  }
  Say(ended);
  sink_->Linger();
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const Definition>> PartitionRunner::Define() {
  while (true) {
    absl::StatusOr<std::shared_ptr<const Definition>> definition =
        context_->definitions.Get(assign_.dataset_id, assign_.dataset_edition);
    // If the dispatcher is unreachable, asks again at once: the session handles this state, and the
    // fetch has already waited.
    const bool unreachable =
        absl::IsUnavailable(definition.status()) || absl::IsDeadlineExceeded(definition.status());
    if (!unreachable || stop_.stop_requested()) return definition;
  }
}

absl::StatusOr<Index> PartitionRunner::Produce(NodeIterator& iterator, const Dataset& dataset) {
  Index index = assign_.bookmark_index;
  if (index % assign_.terms.group_size != 0) {
    return absl::DataLossError(absl::StrCat("the bookmark of ", ToString(assign_.of.partition),
                                            " at index ", index, " is not at the start of the ",
                                            assign_.terms.group_size,
                                            " indices that share an element in a consumer group"));
  }
  if (!assign_.bookmark.empty()) {
    RETURN_IF_ERROR(Annotate(RestoreIterator(iterator, dataset, assign_.bookmark),
                             "in the bookmark of ", ToString(assign_.of.partition), " at index ",
                             index));
  }
  for (int64_t lead = index == 0 ? assign_.lead / assign_.terms.group_size : 0;
       lead > 0 && !stop_.stop_requested();) {
    const int64_t piece = std::min<int64_t>(lead, kOutputsPerBookmark);
    ASSIGN_OR_RETURN(const int64_t passed, iterator.Skip(piece));
    RETURN_IF_ERROR(files_.error());
    if (passed < piece) return index;
    lead -= passed;
  }
  GroupOutput output(
      iterator, assign_.terms.group_size, index,
      [this](Element element, Index first) { return Finished(std::move(element), first); });
  BookmarkClock clock{index, context_->now()};
  int64_t made = 0;
  while (!stop_.stop_requested()) {
    // Skips indices in pieces, so that a long replay gets bookmarks and can be stopped.
    const int64_t unwanted =
        std::min(assign_.skip.FirstMissing(index) - index, int64_t{kOutputsPerBookmark});
    if (unwanted > 0) {
      ASSIGN_OR_RETURN(const int64_t passed, output.Skip(unwanted));
      RETURN_IF_ERROR(files_.error());
      index += passed;
      if (passed > 0) RETURN_IF_ERROR(sink_->Pass(index - 1));
      if (passed < unwanted) return index;
    } else {
      RETURN_IF_ERROR(AwaitRoom());
      if (permit_.ShouldYield()) {
        iteration_sink_->Flush();
        if (!permit_.Yield()) break;
      }
      sink_->Produces(index);
      absl::StatusOr<std::optional<Element>> next = output.Next();
      if (stop_.stop_requested()) break;
      RETURN_IF_ERROR(files_.error());
      if (next.ok() && !next->has_value()) return index;
      if (IsExhausted(next.status())) return next.status();
      RETURN_IF_ERROR(SendNext(std::move(next), index));
      ++index;
      ++made;
      if (count_work_.load(std::memory_order_relaxed)) CountWork(made);
    }
    if (output.whole()) MarkIfDue(iterator, dataset, index, clock);
  }
  return absl::CancelledError("stopped");
}

void PartitionRunner::CountWork(int64_t made) {
  const absl::Duration busy = absl::FromChrono(permit_.held());
  MutexLock lock(mu_);
  count_work_ = false;
  work_.elements = made;
  work_.busy = busy;
}

control::IterationWork PartitionRunner::Work() {
  MutexLock lock(mu_);
  count_work_ = true;
  return work_;
}

absl::StatusOr<Element> PartitionRunner::Finished(Element element, Index index) const {
  const bool for_group = assign_.terms.group_size > 1;
  if (const std::shared_ptr<Pool> slots = for_group ? sink_->SlotsFor(index) : nullptr) {
    element = InSharedSlot(*slots, std::move(element));
  }
  if (element.IsShared()) {  // a source may return one block many times
    ASSIGN_OR_RETURN(element, element.Copy());
  }
  element.set_identity(IdentityOf(index));
  return element;
}

absl::Status PartitionRunner::SendNext(absl::StatusOr<std::optional<Element>> next, Index index) {
  transfer::Sent sent;
  sent.identity = IdentityOf(index);
  if (!next.ok()) {
    sent.error = next.status();
    return sink_->Send(std::move(sent));
  }
  sent.element = **std::move(next);
  FailPoint("seal_before_announce");
  return sink_->Send(std::move(sent));
}

Identity PartitionRunner::IdentityOf(Index index) const {
  return {.job = assign_.job,
          .iteration = assign_.of.iteration,
          .partition = assign_.of.partition,
          .placement = assign_.of.placement,
          .index = index};
}

absl::Status PartitionRunner::AwaitRoom() {
  if (!context_->budget->exhausted()) return absl::OkStatus();
  iteration_sink_->Flush();
  PermitPause pause(&permit_);
  context_->budget->Wait(stop_.get_token());
  return absl::OkStatus();
}

void PartitionRunner::MarkIfDue(NodeIterator& iterator, const Dataset& dataset, Index index,
                                BookmarkClock& clock) {
  const absl::Duration since = context_->now() - clock.at;
  const absl::Duration usual = index - clock.index >= kOutputsPerBookmark
                                   ? kShortestBetweenBookmarks
                                   : kLongestWithoutBookmark;
  const absl::Duration wanted = absl::Nanoseconds(context_->bookmark_interval_ns.load());
  if (since < (clock.sent ? std::max(usual, wanted) : usual)) return;
  clock = {index, context_->now(), /*sent=*/true};
  absl::StatusOr<ReplayPoint> point = SaveForReplay(iterator, dataset);
  // A missing bookmark does no harm, because bookmarks only shorten replays.
  if (!point.ok() || !files_.error().ok()) return;
  control::Bookmark bookmark{
      assign_.of, index, std::move(point->position), {}, PositionVersionsOf(dataset)};
  for (const auto& [provider, first] : point->splits)
    bookmark.splits.push_back({provider, first.first, first.second});
  splits_.Forget(bookmark.splits);
  {
    MutexLock lock(mu_);
    bookmark_ = bookmark;
  }
  Say(std::move(bookmark));
}

// --- Calls from other threads --------------------------------------------------------

void PartitionRunner::Say(control::WorkerUp message) {
  if (!stop_.stop_requested()) context_->Say(std::move(message));
}

void PartitionRunner::AddReader(const control::Reader& reader) {
  sink_->AddReader(reader);
}

void PartitionRunner::RemoveReader(ClientId client) {
  sink_->RemoveReader(client);
}

void PartitionRunner::OnSplits(const control::SplitRun& run) {
  splits_.Append(run);
}

void PartitionRunner::Allow(const control::AllowRows& order) {
  sink_->Allow(order.rows, order.remainder);
}

void PartitionRunner::SayAgain() {
  splits_.AskAgain();
  std::optional<control::Bookmark> bookmark;
  std::optional<control::AtEnd> at_end;
  std::optional<control::Ended> ended;
  std::optional<control::PartitionFailed> failed;
  {
    MutexLock lock(mu_);
    bookmark = bookmark_;
    at_end = at_end_;
    ended = ended_;
    failed = failed_;
  }
  if (bookmark) Say(*std::move(bookmark));
  if (at_end) Say(*at_end);
  if (ended) Say(*ended);
  if (failed) Say(*std::move(failed));
}

void PartitionRunner::Cancel() {
  stop_.request_stop();
  splits_.Cancel();
  permit_.Cancel();
  sink_->Cancel();
}

bool PartitionRunner::AwaitDone(absl::Time deadline) {
  MutexLock lock(mu_);
  return done_changed_.WaitUntil(lock, deadline, [&]() REQUIRES(mu_) { return done_; });
}

}  // namespace penstock::worker
