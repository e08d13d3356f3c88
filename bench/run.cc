// SPDX-License-Identifier: Apache-2.0
#include "bench/run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/machine.h"
#include "bench/neighbours.h"
#include "bench/peer.h"
#include "bench/scratch.h"
#include "bench/service.h"
#include "dataplane/transfer/transport.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

constexpr int64_t kSmallest = 16;               // bytes: two stamps
constexpr int64_t kLargest = int64_t{4} << 30;  // bytes: max_element_bytes

// A peer that takes part in the rounds of a case.
class Guest {
 public:
  Guest(const Options& options, const std::string& name, const Row& ours)
      : itself_{.setup = ours.setup,
                .system = name,
                .basis = ours.basis,
                .step_s = ours.step_s,
                .cached = ours.cached,
                .limit = ours.limit},
        beside_(ours) {
    absl::StatusOr<std::unique_ptr<Peer>> peer =
        Peer::Start(options.peer_launcher, name, ours.setup);
    beside_.limit = name;
    itself_.setup.protocol = "";  // set below from the peer's description
    itself_.status = peer.status();
    if (!peer.ok()) return;
    peer_ = *std::move(peer);
    itself_.system = peer_->About("system");
    itself_.version = peer_->About("version");
    itself_.variant = peer_->About("variant");
    itself_.settings = peer_->About("settings");
    itself_.setup.protocol = peer_->About("protocol");
  }

  // Measures a window of the peer after a pair of ours and the limit.
  void Take(const Pair& pair, double seconds) {
    if (peer_ == nullptr) return;
    const absl::StatusOr<Window> window = Measure(*peer_, seconds);
    if (!window.ok()) {
      itself_.status = window.status();
      peer_.reset();
      return;
    }
    itself_.pairs.push_back({.side = *window, .limit = pair.limit});
    beside_.pairs.push_back({.side = pair.side, .limit = *window});
  }

  // Returns the peer's row and, if it ran, ours with the peer as its limit.
  std::vector<Row> Rows() && {
    std::vector<Row> rows;
    rows.push_back(std::move(itself_));
    if (!beside_.pairs.empty()) rows.push_back(std::move(beside_));
    return rows;
  }

 private:
  Row itself_, beside_;
  std::unique_ptr<Peer> peer_;  // null after a failure
};

// `rows`: the case's row. With neighbours there are two more: ours among neighbours, compared with
// ours alone and with the limit among neighbours.
absl::Status RunRounds(const Options& options, const Workload& workload, std::vector<Row>& rows,
                       std::vector<Guest>& guests) {
  Row& row = rows[0];
  ASSIGN_OR_RETURN(const Scratch scratch, Scratch::Make());
  row.setup.scratch = scratch.path();
  if (row.setup.hosts.two() && workload.has_files()) {
    return absl::UnimplementedError("its workers read files of this host, so they must run here");
  }
  RETURN_IF_ERROR(workload.Prepare(row.setup));
  ASSIGN_OR_RETURN(const std::unique_ptr<Side> limit, workload.MakeLimit(row.setup));
  row.limit = limit->name();
  ASSIGN_OR_RETURN(const std::unique_ptr<Side> ours, StartService(row.setup, "penstock"));
  std::unique_ptr<Side> crowded, crowded_limit;
  if (options.neighbours > 0) {
    const auto beside = [&](Side& side) {
      return BesideNeighbours(side, options.neighbours, row.setup.scratch);
    };
    ASSIGN_OR_RETURN(crowded, beside(*ours));
    ASSIGN_OR_RETURN(crowded_limit, beside(*limit));
    rows[1].setup = rows[2].setup = row.setup;
    rows[1].limit = "alone";
    rows[2].limit = absl::StrCat(limit->name(), " among them");
  }
  for (const std::string& name : options.peers) guests.emplace_back(options, name, row);
  for (int i = 0; i < options.pairs; ++i) {
    Pair pair;
    ASSIGN_OR_RETURN(pair.side, Measure(*ours, options.window_s));
    ASSIGN_OR_RETURN(pair.limit, Measure(*limit, options.window_s));
    if (crowded != nullptr) {
      Pair among;
      ASSIGN_OR_RETURN(among.side, Measure(*crowded, options.window_s));
      ASSIGN_OR_RETURN(among.limit, Measure(*crowded_limit, options.window_s));
      rows[1].pairs.push_back({.side = among.side, .limit = pair.side});
      rows[2].pairs.push_back(std::move(among));
    }
    for (Guest& guest : guests) guest.Take(pair, options.window_s);
    row.pairs.push_back(std::move(pair));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<Setup>> PlanCases(const Options& options) {
  for (int64_t size : options.sizes) {
    if (size < kSmallest || size > kLargest) {
      return absl::InvalidArgumentError(
          absl::StrCat("--size must be from ", kSmallest, " to ", kLargest, " bytes, not ", size));
    }
  }
  std::vector<const Workload*> workloads;
  for (const std::string& name : options.workloads) {
    ASSIGN_OR_RETURN(workloads.emplace_back(), FindWorkload(name));
  }
  if (workloads.empty()) workloads = Workloads();
  for (const std::string& name : options.protocols) {
    RETURN_IF_ERROR(transfer::FindTransport(name).status());
  }
  const std::vector<std::string> protocols =
      options.protocols.empty() ? transfer::TransportNames() : options.protocols;

  std::vector<Setup> cases;
  for (const Workload* workload : workloads) {
    const bool resized = workload->sized() && !options.sizes.empty();
    for (const std::string& protocol : protocols) {
      for (int64_t bytes : resized ? options.sizes : workload->sizes()) {
        for (const Shape& shape : workload->shapes()) {
          // One process holds exactly one trainer and its worker.
          const bool one_process =
              shape.workers == 1 && shape.consumers == 1 && !options.hosts.two();
          if (protocol == "local" && !one_process) continue;
          cases.push_back({.workload = std::string(workload->name()),
                           .protocol = protocol,
                           .element_bytes = bytes,
                           .workers = shape.workers,
                           .consumers = shape.consumers,
                           .coordinated = shape.coordinated,
                           .last = shape.last,
                           .window_s = options.window_s,
                           .source_bytes = options.source_bytes,
                           .hosts = options.hosts});
        }
      }
    }
  }
  return cases;
}

std::vector<Row> RunCase(const Options& options, const Setup& setup) {
  std::vector<Row> rows(1);
  rows[0].setup = setup;
  rows[0].version = Version();
  const absl::StatusOr<const Workload*> workload = FindWorkload(setup.workload);
  if (!workload.ok()) {
    rows[0].status = workload.status();
    return rows;
  }
  rows[0].basis = (*workload)->basis();
  rows[0].step_s = (*workload)->step_s();
  rows[0].cached = (*workload)->cached();
  if (options.neighbours > 0) {
    rows.resize(3, rows[0]);
    rows[1].variant = rows[2].variant = absl::StrCat(options.neighbours, " neighbours");
  }
  std::vector<Guest> guests;
  rows[0].status = RunRounds(options, **workload, rows, guests);
  if (rows.back().pairs.empty() && !rows[0].status.ok()) rows.resize(1);  // one row has the reason
  for (Guest& guest : guests) {
    for (Row& row : std::move(guest).Rows()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace penstock::bench
