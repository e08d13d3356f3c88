// SPDX-License-Identifier: Apache-2.0
#include "control/dispatcher/server/status_page.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "control/observe/html.h"

namespace penstock::control {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string Hex(uint64_t id) {
  return absl::StrFormat("%016x", id);
}

const char* PhaseName(JobPhase phase) {
  return phase == JobPhase::kActive     ? "active"
         : phase == JobPhase::kFinished ? "finished"
                                        : "cancelled";
}

Rows WorkersOf(const DispatcherStatus& status) {
  Rows rows;
  for (const WorkerStatus& worker : status.workers) {
    rows.push_back({worker.address,
                    !worker.connected ? "lost"
                    : worker.draining ? "draining"
                                      : "ready",
                    absl::StrCat(worker.partitions), absl::StrCat(worker.permits),
                    absl::FormatDuration(absl::Trunc(worker.silent_for, absl::Milliseconds(100)))});
  }
  return rows;
}

std::string GoesIn(absl::Duration time) {
  if (time == absl::InfiniteDuration()) return "";
  return absl::FormatDuration(absl::Trunc(time, absl::Seconds(1)));
}

Rows JobsOf(const DispatcherStatus& status) {
  Rows rows;
  for (const JobStatus& job : status.jobs) {
    size_t readers = 0;
    int64_t partitions = 0;
    int64_t received = job.earlier_elements, committed = job.earlier_elements;
    std::string waits_for;
    for (const IterationStatus& iteration : job.iterations) {
      waits_for = iteration.waits_for;
      readers = iteration.readers.size();
      partitions = iteration.num_partitions;
      received += iteration.received;
      committed += iteration.committed;
    }
    rows.push_back(
        {job.name, PhaseName(job.phase), absl::StrCat(job.terms.share.priority),
         absl::StrCat(job.terms.share.weight), job.dataset_id,
         absl::StrCat(job.earlier_iterations + static_cast<int64_t>(job.iterations.size())),
         absl::StrCat(readers), absl::StrCat(partitions), absl::StrCat(received),
         absl::StrCat(committed), waits_for, GoesIn(job.goes_in)});
  }
  return rows;
}

Rows FeedsOf(const DispatcherStatus& status) {
  Rows rows;
  for (const JobStatus& job : status.jobs) {
    const JobFeed& feed = job.feed;
    if (feed.wanted_per_s <= 0) continue;
    const bool known = feed.workers > 0;
    rows.push_back({job.name, absl::StrFormat("%.0f %%", 100 * feed.busy),
                    absl::StrFormat("%.4g", feed.wanted_per_s),
                    known ? absl::StrFormat("%.4g", feed.worker_per_s) : "",
                    known ? absl::StrFormat("%.2f", feed.workers) : ""});
  }
  return rows;
}

// Lists the links by the time that trainers waited for them, the longest time first.
Rows WaitsOf(const DispatcherStatus& status) {
  std::vector<const LinkStatus*> links;
  for (const LinkStatus& link : status.links) {
    if (link.counts.waits > 0) links.push_back(&link);
  }
  std::stable_sort(links.begin(), links.end(), [](const LinkStatus* a, const LinkStatus* b) {
    return a->counts.waited_until_received > b->counts.waited_until_received;
  });
  Rows rows;
  for (const LinkStatus* link : links) {
    const LinkCounts& counts = link->counts;
    rows.push_back({link->job, Hex(link->client.value()), link->worker, absl::StrCat(counts.waits),
                    absl::StrFormat("%.3f", absl::ToDoubleSeconds(counts.waited_until_received)),
                    absl::StrFormat("%.3f", absl::ToDoubleSeconds(counts.waited_after_received))});
  }
  return rows;
}

Rows LinksOf(const DispatcherStatus& status) {
  Rows rows;
  for (const LinkStatus& link : status.links) {
    rows.push_back(
        {link.job, Hex(link.client.value()), link.reads, link.worker, link.counts.protocol,
         link.counts.open ? "open" : "closed", absl::StrFormat("%.0f", link.elements_per_s),
         absl::StrFormat("%.1f", link.bytes_per_s / 1e6), absl::StrCat(link.counts.elements),
         absl::StrCat(link.counts.credits), link.counts.reason});
  }
  return rows;
}

Rows DatasetsOf(const DispatcherStatus& status) {
  Rows rows;
  for (const DatasetStatus& dataset : status.datasets) {
    rows.push_back({dataset.dataset_id, Hex(dataset.fingerprint),
                    absl::StrCat(dataset.definition_bytes), dataset.spec_text,
                    absl::StrCat(dataset.jobs), GoesIn(dataset.goes_in)});
  }
  return rows;
}

// The line below a table that shows `shown` of `all` rows; empty if it shows all.
std::string More(size_t shown, int64_t all, const char* command) {
  const int64_t more = all - static_cast<int64_t>(shown);
  if (more <= 0) return "";
  return absl::StrCat("<p>", more, " more: <code>penstock ", command, " --all</code></p>\n");
}

}  // namespace

StatusQuery StatusPageQuery() {
  return {
      .parts = {StatusPart::kWorkers, StatusPart::kJobs, StatusPart::kLinks, StatusPart::kDatasets},
      .rows = 100};
}

std::string StatusPage(const DispatcherStatus& status) {
  return HtmlPage(
      "Penstock dispatcher",
      absl::StrCat(
          "<p>release ", status.release, " · term ", status.term.value(), " · journal at record ",
          status.journal_sequence,
          status.wanted_workers > 0 ? absl::StrCat(" · ", status.num_workers, " workers of ",
                                                   status.wanted_workers, " wanted")
                                    : "",
          "</p>\n",
          HtmlTable("Workers", {"worker", "state", "partitions", "permits", "silent for"},
                    WorkersOf(status)),
          More(status.workers.size(), status.num_workers, "status"),
          HtmlTable("Jobs",
                    {"job", "phase", "priority", "weight", "dataset", "iterations", "readers",
                     "partitions", "received", "committed", "waits for", "goes in"},
                    JobsOf(status)),
          More(status.jobs.size(), status.num_jobs, "jobs list"),
          "<p>received: elements that readers have, returned by Next() or received for it · "
          "committed: of "
          "them, those in a trainer's history for good · waits for: what the latest pass needs "
          "to continue</p>\n",
          HtmlTable(
              "How well trainers are fed",
              {"job", "trainers busy", "elements/s wanted", "a worker makes", "workers needed"},
              FeedsOf(status)),
          HtmlTable("Workers that made steps wait",
                    {"job", "client", "worker waited for", "waits", "seconds until received",
                     "seconds handed over"},
                    WaitsOf(status)),
          HtmlTable("Links",
                    {"job", "client", "reads", "worker", "protocol", "state", "elements/s", "MB/s",
                     "elements", "credits", "why this protocol"},
                    LinksOf(status)),
          More(status.links.size(), status.num_links, "links"),
          HtmlTable("Datasets", {"dataset", "fingerprint", "bytes", "elements", "jobs", "goes in"},
                    DatasetsOf(status)),
          More(status.datasets.size(), status.num_datasets, "datasets list")));
}

}  // namespace penstock::control
