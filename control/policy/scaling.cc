// SPDX-License-Identifier: Apache-2.0
#include "control/policy/scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace penstock::control {
namespace {

// The window of a pace. It is long enough that rare events take up less than half of it, and short
// enough that the pace follows a change within half a minute. A slow source keeps at least kFewest
// samples, even if they are older.
constexpr absl::Duration kWindow = absl::Seconds(20);
constexpr size_t kFewest = 9;
// The shortest time per element that counts. A shorter time counts as this one, because no trainer
// or worker is faster.
constexpr double kLeastSeconds = 1e-7;
// The time for which a client that left still counts, because its next repetition may follow.
constexpr absl::Duration kMayComeBack = absl::Seconds(15);
// A rate that differs from the median by more than this factor counts as if it differed by exactly
// this factor. The mean thus includes slow workers, but no absurd values.
constexpr double kFarOff = 4;
// Bounds of the estimate: at most kMostTimes times, and at most kMostMore more than, the current
// number of workers. tf.data service has the same bounds.
constexpr int64_t kMostTimes = 4;
constexpr int64_t kMostMore = 500;
constexpr int64_t kMostWorkers = 100'000;

// REQUIRES: `values` is not empty.
double MedianOf(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

double MeanWithoutFarOff(std::vector<double> values) {
  const double median = MedianOf(values);
  double sum = 0;
  for (double value : values) sum += std::clamp(value, median / kFarOff, median * kFarOff);
  return sum / static_cast<double>(values.size());
}

// Returns the time that the node takes when all its calls run at once.
absl::Duration TimeOf(const NodeStats& node) {
  return node.busy / static_cast<double>(std::max<int64_t>(node.parallelism, 1));
}

// Rounds `need` up, but returns `before` if the difference is small, so that noise does not make
// workers come and go.
int64_t RoundUp(double need, int64_t before) {
  const double slack = std::clamp(0.02 * need, 0.1, 0.5);
  const auto was = static_cast<double>(before);
  if (before > 0 && need <= was + slack && need > was - 1 - slack) return before;
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(need - 1e-9)));
}

}  // namespace

// --- Pace ----------------------------------------------------------------------------

void Pace::Heard(uint64_t source, int64_t elements, absl::Duration time, absl::Time now) {
  if (elements_ < 0 || source != source_ || elements < elements_ || time < time_) {
    source_ = source;
    elements_ = elements;
    time_ = time;
    return;
  }
  if (elements == elements_) return;  // the time counts for the next element
  const double seconds =
      absl::ToDoubleSeconds(time - time_) / static_cast<double>(elements - elements_);
  elements_ = elements;
  time_ = time;
  samples_.push_back({now, std::max(seconds, kLeastSeconds)});
  while (samples_.size() > kFewest && samples_.front().at < now - kWindow) samples_.pop_front();
  std::vector<double> all;
  for (const Sample& sample : samples_) all.push_back(sample.seconds);
  seconds_ = MedianOf(std::move(all));
}

// --- Measurements ----------------------------------------------------------------------------

void Scaling::OnClientSteps(JobId job, ClientId client, Incarnation incarnation,
                            const StepCounts& steps, absl::Time now) {
  // A peer may report any numbers.
  if (steps.elements <= 0 || steps.own < absl::ZeroDuration()) return;
  MutexLock lock(mu_);
  Client& its = jobs_[job].clients[client];
  its.left = absl::InfiniteFuture();
  its.own.Heard(incarnation.value(), steps.elements, steps.own, now);
  if (steps.elements == its.last.elements) return;
  its.before = steps.elements < its.last.elements ? StepCounts() : its.last;
  its.last = steps;
}

void Scaling::ClientLeft(JobId job, ClientId client, absl::Time now) {
  MutexLock lock(mu_);
  const auto found = jobs_.find(job);
  if (found == jobs_.end()) return;
  const auto its = found->second.clients.find(client);
  if (its != found->second.clients.end()) its->second.left = now;
}

void Scaling::OnWorkerHeartbeat(const State& state, WorkerId worker, const WorkerHeartbeat& beat,
                                absl::Time now) {
  const WorkerRecord* record = state.FindWorker(worker);
  if (record == nullptr) return;
  MutexLock lock(mu_);
  for (const IterationWork& work : beat.iterations) {
    const IterationState* iteration = state.FindIteration(work.iteration);
    const JobRecord* job = iteration == nullptr ? nullptr : state.FindJob(iteration->job);
    if (job == nullptr || work.elements < 0 || work.partitions <= 0) continue;
    Worker& its = jobs_[job->id].workers[worker];
    Pace& pace = its.made[work.iteration];
    std::erase_if(its.made, [&](const auto& other) {
      return std::none_of(beat.iterations.begin(), beat.iterations.end(),
                          [&](const IterationWork& of) { return of.iteration == other.first; });
    });
    pace.Heard(0, work.elements, work.busy, now);
    for (const DatasetWork& dataset : beat.work) {
      if (dataset.dataset_id != job->dataset->id || dataset.stats.nodes.empty()) continue;
      const auto& nodes = dataset.stats.nodes;
      const auto busiest = std::max_element(
          nodes.begin(), nodes.end(),
          [](const NodeStats& a, const NodeStats& b) { return TimeOf(a) < TimeOf(b); });
      its.busiest.Heard(static_cast<uint64_t>(busiest - nodes.begin()), nodes.back().elements,
                        TimeOf(*busiest), now);
    }
    if (!pace.known()) continue;
    const int64_t permits = std::max(record->permits, 1);
    const auto at_once = static_cast<double>(std::min<int64_t>(work.partitions, permits));
    const double seconds =
        std::max(pace.seconds(), its.busiest.known() ? its.busiest.seconds() : 0);
    its.per_s = at_once / seconds;
    its.share = at_once / static_cast<double>(permits);
  }
}

void Scaling::WorkerGone(WorkerId worker) {
  MutexLock lock(mu_);
  for (auto& [id, job] : jobs_) job.workers.erase(worker);
}

// --- The estimate ----------------------------------------------------------------------------

JobFeed Scaling::FeedOf(const JobTerms& terms, const Job& job) const {
  JobFeed feed;
  double sum = 0, most = 0, least = std::numeric_limits<double>::infinity();
  double own = 0, whole = 0;
  int64_t known = 0;
  for (const auto& [id, client] : job.clients) {
    if (!client.own.known()) continue;
    const double per_s = 1 / client.own.seconds();
    ++known;
    sum += per_s;
    most = std::max(most, per_s);
    least = std::min(least, per_s);
    own += absl::ToDoubleSeconds(client.last.own - client.before.own);
    whole += absl::ToDoubleSeconds(client.last.own - client.before.own + client.last.waited -
                                   client.before.waited);
  }
  if (known > 0) {
    // Trainers that share a window get the same elements. The consumers of a coordinated read are
    // as fast as the slowest consumer.
    feed.wanted_per_s = terms.cross_trainer_cache ? most
                        : terms.num_consumers > 0 ? least * static_cast<double>(known)
                                                  : sum;
    feed.busy = whole > 0 ? own / whole : 1;
  }
  std::vector<double> rates;
  for (const auto& [id, worker] : job.workers) {
    if (worker.per_s > 0) rates.push_back(worker.per_s);
  }
  if (!rates.empty()) feed.worker_per_s = MeanWithoutFarOff(std::move(rates));
  if (known > 0 && feed.worker_per_s > 0) {
    feed.workers = kFed * feed.wanted_per_s / feed.worker_per_s;
    if (terms.quota.max_permits > 0) {  // further workers would get no partition
      feed.workers = std::min(feed.workers, static_cast<double>(terms.quota.max_permits));
    }
  }
  return feed;
}

const Scaling::Estimate& Scaling::Decide(const State& state, int64_t current, absl::Time now) {
  MutexLock lock(mu_);
  std::erase_if(jobs_, [&](const auto& entry) {
    const JobRecord* job = state.FindJob(entry.first);
    return job == nullptr || job->cancelled || state.IsOver(*job);
  });
  for (auto& [id, job] : jobs_) {
    std::erase_if(job.clients,
                  [&](const auto& client) { return now - client.second.left >= kMayComeBack; });
  }
  Estimate estimate;
  double together = 0;  // the workers needed by all jobs together
  std::vector<std::string> why;
  for (const auto& [id, job] : jobs_) {
    const JobRecord& record = *state.FindJob(id);
    const JobFeed& feed = estimate.jobs[id] = FeedOf(record.terms, job);
    if (feed.workers <= 0) continue;
    double share = 0;
    for (const auto& [worker, its] : job.workers) share = std::max(share, its.share);
    together += feed.workers * share;
    estimate.need = std::max(estimate.need, feed.workers);
    why.push_back(absl::StrFormat(
        "%s: %.4g elements/s wanted, %.4g a worker, %.2f workers, trainers busy %.2f", record.name,
        feed.wanted_per_s, feed.worker_per_s, feed.workers, feed.busy));
  }
  // Jobs share the workers: each job takes a part of the workers' time.
  estimate.need = std::max(estimate.need, together);
  if (estimate.need > 0 && current > 0) {
    const int64_t most = std::min({kMostTimes * current, current + kMostMore, kMostWorkers});
    const double bounded = std::min(estimate.need, static_cast<double>(most));
    estimate.workers = RoundUp(bounded, std::min(latest_.workers, most));
  }
  estimate.changed = estimate.workers != latest_.workers;
  estimate.why = absl::StrJoin(why, "; ");
  latest_ = std::move(estimate);
  return latest_;
}

}  // namespace penstock::control
