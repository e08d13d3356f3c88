// SPDX-License-Identifier: Apache-2.0
// Requests to the dispatcher about datasets and jobs, and their answers, as plain values. Each
// request is a separate call, outside the streams of clients and workers.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/protocol/job_terms.h"
#include "penstock/ids.h"
#include "penstock/iterator.h"

namespace penstock::control {

// The id of a request. A request that is repeated with the same id gets the same answer, even from
// a restarted dispatcher. Counter 0: the request has no id, and must not be repeated.
struct RequestId {
  Incarnation incarnation;
  uint64_t counter = 0;
  friend auto operator<=>(const RequestId&, const RequestId&) = default;
};

// The fingerprint of one node of a dataset, in topological order.
struct NodeFingerprint {
  std::string name;
  uint64_t fingerprint = 0;
  friend bool operator==(const NodeFingerprint&, const NodeFingerprint&) = default;
};

// A source that can be divided. Providers are numbered by their place in the plan.
struct SplitProvider {
  std::string node;
  int64_t count = 0;  // splits of one repetition
  bool shuffled = false;
  std::optional<uint64_t> seed;    // of the permutation; absent: derived from the iteration's seed
  std::vector<std::string> files;  // of a source of files: in split order
  bool by_file = false;  // a split is one or more files, so mode FILE can divide the source
  friend bool operator==(const SplitProvider&, const SplitProvider&) = default;
};

// The part of a dataset that the dispatcher reads. The dispatcher passes on the definition without
// reading it.
struct DatasetSummary {
  uint64_t fingerprint = 0;
  uint64_t spec_fingerprint = 0;
  std::string spec_text;  // as Spec::ToString() prints it
  Cardinality cardinality = kUnknown;
  bool ends = false;  // certainly finite, even if the number of elements is unknown
  std::vector<NodeFingerprint> nodes;
  std::vector<SplitProvider> plan;  // made where the files can be read
  friend bool operator==(const DatasetSummary&, const DatasetSummary&) = default;
};

struct RegisterDatasetRequest {
  RequestId request;
  std::string dataset_id;  // empty: chosen by the dispatcher
  bool replace = false;    // replaces a different definition under dataset_id
  std::string name_space;  // for an id chosen by the dispatcher; empty: "default"
  std::string definition;
  DatasetSummary summary;
};

struct RegisterDatasetAnswer {
  std::string dataset_id;
  bool existed = false;  // an equal definition had this id
  friend bool operator==(const RegisterDatasetAnswer&, const RegisterDatasetAnswer&) = default;
};

// The content of a part of a dataset: its definition or its summary.
struct DatasetPart {
  uint64_t bytes = 0;
  std::string sha256;  // 32 bytes
  friend bool operator==(const DatasetPart&, const DatasetPart&) = default;
};

struct GetDatasetAnswer {
  std::string dataset_id;
  std::string definition;
  DatasetSummary summary;
  // Only on the wire, of a dataset that is fetched in pieces (control/rpc/dataset_fetcher.h).
  std::vector<DatasetPart> parts = {};
  std::string piece = {};
};

struct GetOrCreateJobRequest {
  RequestId request;
  std::string name;    // empty: the request gets a job of its own
  std::string run_id;  // the name of a finished job can be used again with a different run_id
  std::string dataset_id;
  // The fingerprint that the registered dataset must have; absent: any fingerprint.
  std::optional<uint64_t> dataset_fingerprint;
  JobTerms terms;
  std::optional<uint64_t> seed;  // absent: drawn by the dispatcher, and journaled
  std::string name_space;        // for a name chosen by the dispatcher; empty: "default"
};

struct JobAnswer {
  JobId job;
  std::string name;   // also of an anonymous job
  std::string token;  // authorises links that carry the job's elements
  std::string dataset_id;
  uint64_t seed = 0;
  bool existed = false;
  friend bool operator==(const JobAnswer&, const JobAnswer&) = default;
};

// The parts of DispatcherStatus, in the order of their pages. The items of a part are in the order
// of their ids.
enum class StatusPart : uint8_t {
  kWorkers = 0,
  kJobs = 1,        // with their iterations; earlier ones are only summed up
  kPartitions = 2,  // of all jobs, with the iterations to which they belong, past ones too
  kLinks = 3,
  kDatasets = 4,
  kWork = 5,  // the work of one worker is one item
};

// A request for a page of DispatcherStatus.
struct StatusRequest {
  std::string name_space;  // only its jobs and datasets; empty: all that the caller may see
  int64_t page_size = 0;   // the maximum number of items; 0, or more than kMostOnPage: kMostOnPage
  // next_page_token of the previous page; empty: the first page. It names the next item by its id,
  // so whatever comes or goes between two pages, no item that stays is left out or listed twice.
  std::string page_token = {};
  std::vector<StatusPart> parts = {};  // only these; empty: all
  std::string job = {};  // only this job, its partitions and its links; a name or a number
};
// The dispatcher lists this many items within a fraction of a heartbeat.
inline constexpr int64_t kMostOnPage = 1000;

}  // namespace penstock::control
