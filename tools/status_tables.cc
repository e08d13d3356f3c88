// SPDX-License-Identifier: Apache-2.0
#include "tools/status_tables.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "tools/table.h"

namespace penstock::tools {
namespace {

using Rows = std::vector<std::vector<std::string>>;

std::string Hex(uint64_t id) {
  return id == 0 ? "-" : absl::StrFormat("%016x", id);
}
std::string OrDash(const std::string& text) {
  return text.empty() ? "-" : text;
}

std::string DurationOrDash(absl::Duration duration) {
  if (duration == absl::ZeroDuration() || duration == absl::InfiniteDuration()) return "-";
  return absl::FormatDuration(absl::Trunc(duration, absl::Seconds(1)));
}

std::string NameOf(ShardingPolicy mode) {
  switch (mode) {
    case ShardingPolicy::kOff:
      return "off";
    case ShardingPolicy::kDynamic:
      return "dynamic";
    case ShardingPolicy::kFile:
      return "file";
    case ShardingPolicy::kData:
      return "data";
    case ShardingPolicy::kFileOrData:
      return "file_or_data";
    case ShardingPolicy::kHint:
      return "hint";
  }
  return absl::StrCat(static_cast<int>(mode));
}

std::string NameOf(control::JobPhase phase) {
  switch (phase) {
    case control::JobPhase::kActive:
      return "active";
    case control::JobPhase::kFinished:
      return "finished";
    case control::JobPhase::kCancelled:
      return "cancelled";
  }
  return absl::StrCat(static_cast<int>(phase));
}

// The line below a table with `shown` of `all` rows; empty if the table has all.
std::string More(size_t shown, int64_t all) {
  const int64_t more = all - static_cast<int64_t>(shown);
  return more <= 0 ? "" : absl::StrCat(more, " more: use --all\n");
}

std::string CountOf(Cardinality cardinality) {
  if (cardinality == kUnknown) return "unknown";
  if (cardinality == kInfinite) return "infinite";
  return absl::StrCat(static_cast<int64_t>(cardinality));
}

}  // namespace

std::string ReportOverview(const control::DispatcherStatus& status) {
  return absl::StrCat(
      "release ", OrDash(status.release), ", term ", status.term.value(), ", journal ",
      status.journal, " at ", status.journal_sequence,
      status.wanted_workers > 0
          ? absl::StrCat(", ", status.num_workers, " workers of ", status.wanted_workers, " wanted")
          : "",
      "\n");
}

std::string ReportWorkers(const control::DispatcherStatus& status) {
  Rows rows;
  std::string refused;
  for (const control::WorkerStatus& worker : status.workers) {
    for (const std::string& reason : worker.refuses)
      absl::StrAppend(&refused, worker.address, " refuses ", reason, "\n");
    rows.push_back({worker.address, Hex(worker.worker.value()), absl::StrCat(worker.permits),
                    absl::StrCat(worker.partitions),
                    !worker.connected ? "lost"
                    : worker.draining ? "draining"
                                      : "ready",
                    absl::FormatDuration(absl::Trunc(worker.silent_for, absl::Milliseconds(100)))});
  }
  return FormatTable({"WORKER", "ID", "PERMITS", "PARTITIONS", "STATE", "SILENT"}, rows) +
         More(rows.size(), status.num_workers) + refused;
}

std::string ReportJobs(const control::DispatcherStatus& status) {
  Rows rows;
  for (const control::JobStatus& job : status.jobs) {
    int64_t received = job.earlier_elements, committed = job.earlier_elements;
    size_t readers = 0;
    std::string owed, waits_for;
    for (const control::IterationStatus& iteration : job.iterations) {
      waits_for = iteration.waits_for;
      readers = iteration.readers.size();
      if (!iteration.owed.empty()) owed = iteration.owed;
      received += iteration.received;
      committed += iteration.committed;
    }
    rows.push_back(
        {absl::StrCat(job.job.value()), OrDash(job.name), NameOf(job.terms.mode), NameOf(job.phase),
         absl::StrCat(job.terms.share.priority), absl::StrCat(job.terms.share.weight),
         job.dataset_id,
         absl::StrCat(job.earlier_iterations + static_cast<int64_t>(job.iterations.size())),
         absl::StrCat(readers), absl::StrCat(received), absl::StrCat(committed), OrDash(owed),
         OrDash(job.slowed_by), OrDash(waits_for), DurationOrDash(job.unread_for),
         DurationOrDash(job.goes_in), OrDash(job.owner)});
  }
  return FormatTable({"JOB", "NAME", "MODE", "PHASE", "PRIORITY", "WEIGHT", "DATASET", "ITERATIONS",
                      "READERS", "RECEIVED", "COMMITTED", "OWED", "SLOWED BY", "WAITS FOR",
                      "UNREAD FOR", "GOES IN", "OWNER"},
                     rows) +
         More(rows.size(), status.num_jobs);
}

std::string ReportDatasets(const control::DispatcherStatus& status) {
  Rows rows;
  for (const control::DatasetStatus& dataset : status.datasets) {
    rows.push_back({dataset.dataset_id, Hex(dataset.fingerprint), CountOf(dataset.cardinality),
                    absl::StrCat(dataset.definition_bytes), absl::StrCat(dataset.jobs),
                    DurationOrDash(dataset.goes_in), OrDash(dataset.owner), dataset.spec_text});
  }
  return FormatTable(
             {"DATASET", "FINGERPRINT", "CARDINALITY", "BYTES", "JOBS", "GOES IN", "OWNER", "SPEC"},
             rows) +
         More(rows.size(), status.num_datasets);
}

std::string ReportPartitions(const control::JobStatus& job) {
  Rows rows;
  for (const control::IterationStatus& iteration : job.iterations) {
    for (const control::PartitionStatus& partition : iteration.partitions) {
      rows.push_back({absl::StrCat(iteration.repetition), absl::StrCat(partition.partition.value()),
                      absl::StrCat(partition.placement.value()), Hex(partition.worker.value()),
                      partition.ended ? absl::StrCat(partition.elements) : "-",
                      absl::StrCat(partition.splits_given), absl::StrCat(partition.received),
                      absl::StrCat(partition.committed), OrDash(partition.waits_for)});
    }
  }
  return FormatTable({"REPETITION", "PARTITION", "PLACEMENT", "WORKER", "ELEMENTS", "SPLITS",
                      "RECEIVED", "COMMITTED", "WAITS FOR"},
                     rows);
}

std::string ReportFeeds(const control::DispatcherStatus& status) {
  Rows rows;
  for (const control::JobStatus& job : status.jobs) {
    const control::JobFeed& feed = job.feed;
    if (feed.wanted_per_s <= 0) continue;
    const bool known = feed.workers > 0;
    rows.push_back({OrDash(job.name), absl::StrFormat("%.0f %%", 100 * feed.busy),
                    absl::StrFormat("%.4g", feed.wanted_per_s),
                    known ? absl::StrFormat("%.4g", feed.worker_per_s) : "-",
                    known ? absl::StrFormat("%.2f", feed.workers) : "-"});
  }
  return FormatTable(
      {"JOB", "TRAINERS BUSY", "ELEMENTS/S WANTED", "A WORKER MAKES", "WORKERS NEEDED"}, rows);
}

std::string ReportWaits(const control::DispatcherStatus& status,
                        const control::DispatcherStatus* before, absl::Duration since) {
  struct Row {
    const control::LinkStatus* link;
    control::LinkCounts counts;
  };
  std::vector<Row> waits;
  for (const control::LinkStatus& link : status.links) {
    Row row{&link, link.counts};
    if (before != nullptr) {
      for (const control::LinkStatus& was : before->links) {
        if (was.client != link.client || was.iteration != link.iteration ||
            was.counts.worker != link.counts.worker) {
          continue;
        }
        row.counts.waits -= was.counts.waits;
        row.counts.waited_until_received -= was.counts.waited_until_received;
        row.counts.waited_after_received -= was.counts.waited_after_received;
      }
    }
    if (row.counts.waits > 0) waits.push_back(row);
  }
  std::stable_sort(waits.begin(), waits.end(), [](const Row& a, const Row& b) {
    return a.counts.waited_until_received > b.counts.waited_until_received;
  });
  Rows rows;
  for (const auto& [link, counts] : waits) {
    const absl::Duration waited = counts.waited_until_received + counts.waited_after_received;
    rows.push_back(
        {link->job, Hex(link->client.value()), OrDash(link->worker), absl::StrCat(counts.waits),
         absl::StrFormat("%.3f", absl::ToDoubleSeconds(waited)),
         absl::StrFormat("%.3f", absl::ToDoubleSeconds(counts.waited_after_received)),
         before == nullptr ? "-"
                           : absl::StrFormat("%.0f %%", 100 * absl::FDivDuration(waited, since))});
  }
  return FormatTable(
      {"JOB", "CLIENT", "WAITED FOR WORKER", "WAITS", "SECONDS", "HANDED OVER", "OF THE TIME"},
      rows);
}

// Returns "98 % (no_slot 2 %)"; "-" if nothing was counted.
static std::string InPlace(const control::FilledElements& filled) {
  if (filled == control::FilledElements()) return "-";
  double all = 0;  // a client may report any numbers
  for (const int64_t elements :
       {filled.in_place, filled.no_slot, filled.for_another, filled.elsewhere}) {
    all += static_cast<double>(elements);
  }
  const auto part = [all](int64_t of) {
    return absl::StrFormat("%.3g %%", 100 * static_cast<double>(of) / all);
  };
  std::vector<std::string> copied;
  const std::pair<const char*, int64_t> reasons[] = {{"no_slot", filled.no_slot},
                                                     {"for_another", filled.for_another},
                                                     {"elsewhere", filled.elsewhere}};
  for (const auto& [why, elements] : reasons)
    if (elements > 0) copied.push_back(absl::StrCat(why, " ", part(elements)));
  if (copied.empty()) return part(filled.in_place);
  return absl::StrCat(part(filled.in_place), " (", absl::StrJoin(copied, ", "), ")");
}

std::string ReportLinks(const control::DispatcherStatus& status) {
  Rows rows;
  for (const control::LinkStatus& link : status.links) {
    rows.push_back({link.job, Hex(link.client.value()), OrDash(link.reads), OrDash(link.worker),
                    OrDash(link.counts.protocol), link.counts.open ? "open" : "closed",
                    absl::StrCat(link.counts.elements),
                    absl::StrFormat("%.3f", static_cast<double>(link.counts.bytes) / 1e9),
                    absl::StrFormat("%.0f", link.elements_per_s),
                    absl::StrFormat("%.3f", link.bytes_per_s / 1e9),
                    absl::StrCat(link.counts.credits), InPlace(link.counts.filled),
                    OrDash(link.counts.reason)});
  }
  return FormatTable({"JOB", "CLIENT", "READS", "WORKER", "PROTOCOL", "STATE", "ELEMENTS", "GB",
                      "ELEMENTS/S", "GB/S", "CREDITS", "IN PLACE", "REASON"},
                     rows) +
         More(rows.size(), status.num_links);
}

std::string LinksAsJson(const control::DispatcherStatus& status) {
  nlohmann::json links = nlohmann::json::array();
  for (const control::LinkStatus& link : status.links) {
    links.push_back({{"job", link.job},
                     {"iteration", link.iteration.value()},
                     {"client", Hex(link.client.value())},
                     {"reads", link.reads},
                     {"worker", link.worker},
                     {"protocol", link.counts.protocol},
                     {"reason", link.counts.reason},
                     {"open", link.counts.open},
                     {"elements", link.counts.elements},
                     {"bytes", link.counts.bytes},
                     {"credits", link.counts.credits},
                     {"filled",
                      {{"in_place", link.counts.filled.in_place},
                       {"no_slot", link.counts.filled.no_slot},
                       {"for_another", link.counts.filled.for_another},
                       {"elsewhere", link.counts.filled.elsewhere}}},
                     {"elements_per_s", link.elements_per_s},
                     {"bytes_per_s", link.bytes_per_s}});
  }
  // Clients may report any bytes as text. Bytes that are not UTF-8 are replaced.
  return links.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace penstock::tools
