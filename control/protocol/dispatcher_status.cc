// SPDX-License-Identifier: Apache-2.0
#include "control/protocol/dispatcher_status.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "include/status_macros.h"

namespace penstock::control {
namespace {

template <class List>
void MoveAll(List& from, List& to) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

// An iteration that does not fit on one page is on several, each with other partitions.
void Join(IterationStatus& page, std::vector<IterationStatus>& to) {
  const auto same = std::ranges::find(to, page.iteration, &IterationStatus::iteration);
  if (same == to.end()) {
    to.push_back(std::move(page));
  } else {
    MoveAll(page.partitions, same->partitions);
  }
}

void Join(JobStatus& page, std::vector<JobStatus>& to) {
  // Pages are in the order of ids, so a job that is there already is the last one. Pages of other
  // parts begin with the first job again.
  const auto same = to.empty() || to.back().job < page.job
                        ? to.end()
                        : std::ranges::find(to, page.job, &JobStatus::job);
  if (same == to.end()) {
    to.push_back(std::move(page));
  } else {
    for (IterationStatus& iteration : page.iterations) Join(iteration, same->iterations);
  }
}

void Join(DispatcherStatus& page, DispatcherStatus& to) {
  for (JobStatus& job : page.jobs) Join(job, to.jobs);
  MoveAll(page.datasets, to.datasets);
  MoveAll(page.workers, to.workers);
  MoveAll(page.links, to.links);
  MoveAll(page.work, to.work);
  to.num_workers += page.num_workers;
  to.num_jobs += page.num_jobs;
  to.num_links += page.num_links;
  to.num_datasets += page.num_datasets;
}

}  // namespace

absl::StatusOr<DispatcherStatus> CollectStatus(
    const StatusQuery& query,
    absl::FunctionRef<absl::StatusOr<DispatcherStatus>(const StatusRequest&)> ask) {
  std::vector<std::vector<StatusPart>> rounds = {query.parts};
  if (query.rows > 0) {
    rounds.clear();
    for (const StatusPart part : kStatusParts) {
      if (query.parts.empty() || std::ranges::find(query.parts, part) != query.parts.end())
        rounds.push_back({part});
    }
  }
  absl::StatusOr<DispatcherStatus> whole;
  for (bool first = true; const std::vector<StatusPart>& parts : rounds) {
    StatusRequest request{.name_space = query.name_space,
                          .page_size = query.rows,
                          .page_token = {},
                          .parts = parts,
                          .job = query.job};
    do {
      ASSIGN_OR_RETURN(DispatcherStatus page, ask(request));
      request.page_token = std::exchange(page.next_page_token, "");
      if (std::exchange(first, false)) {
        whole = std::move(page);
      } else {
        Join(page, *whole);
      }
    } while (query.rows == 0 && !request.page_token.empty());
  }
  return whole;
}

}  // namespace penstock::control
