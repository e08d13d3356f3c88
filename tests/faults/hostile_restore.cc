// SPDX-License-Identifier: Apache-2.0
// Begins jobs with an altered state, whose partitions claim splits from wrong ordinals on. Prints
// one line for each try: the error of Restore() or of the first Next().
#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "dataplane/client/session_state/state.h"
#include "dataplane/dataset/engine/state_sections.h"
#include "dataplane/dataset/graph/state_bytes.h"
#include "include/status_macros.h"
#include "penstock/states_of_ranks.h"
#include "tools/soak/numbers.h"

namespace penstock::soak {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr std::string_view kMagic = "PSIT";
// dataplane/dataset/engine/state_head.h and the version
constexpr int kNumbersInHead = 6;

// The ordinals of the partitions; their sums wrap.
const std::vector<int64_t> kOrdinals[] = {{kMost}, {kMost, kMost, 4}, {kMost - 50, 60}, {-6}};

absl::StatusOr<Iterator> Open(const std::string& service, const std::string& job) {
  return Numbers(1000, 1)
      .Distribute({.processing_mode = ShardingPolicy::kDynamic,
                   .service = service,
                   .job_name = job,
                   .ack_mode = AckMode::kOnCommit})
      .MakeIterator();
}

// Returns the state of a reader that has taken some elements.
absl::StatusOr<State> SomeState(const std::string& service, const std::string& job) {
  ASSIGN_OR_RETURN(Iterator it, Open(service, job));
  for (int i = 0; i < 10; ++i) RETURN_IF_ERROR(it.Next().status());
  return it.Save();
}

// A state's bytes are magic, head, sections and position; alters only the section that Distribute
// wrote.
absl::StatusOr<State> Alter(const State& state, const std::vector<int64_t>& ordinals) {
  StateReader reader(std::string_view(state.bytes).substr(kMagic.size()));
  StateWriter writer;
  for (int of_head = 0; of_head < kNumbersInHead; ++of_head) {
    ASSIGN_OR_RETURN(const uint64_t value, reader.ReadUnsigned());
    writer.WriteUnsigned(value);
  }
  ASSIGN_OR_RETURN(StateSections sections, ReadStateSections(reader));
  for (auto& [node, section] : sections) {
    StateReader bytes(section.bytes);
    ASSIGN_OR_RETURN(client::JobState job, client::ReadJobState(bytes));
    size_t altered = 0;
    for (auto& partition : job.saved.at(0).partitions) {
      if (partition.given.empty()) continue;
      partition.given[0].first_ordinal = ordinals[altered++ % ordinals.size()];
      partition.bookmarks = {{0, ""}};
    }
    StateWriter anew;
    Write(job, anew);
    section.bytes = std::move(anew).Take();
  }
  Write(sections, writer);
  return State{absl::StrCat(std::string(kMagic), writer.bytes(), std::string(reader.rest()))};
}

absl::Status Try(const std::string& service, const std::string& job, const State& state,
                 const std::string& run_id) {
  ASSIGN_OR_RETURN(Iterator it, Open(service, job));
  RETURN_IF_ERROR(it.Restore(MergeRankStates({state}, {.run_id = run_id})));
  return it.Next().status();
}

absl::Status TryAll(const std::string& service, const std::string& job) {
  ASSIGN_OR_RETURN(const State state, SomeState(service, job));
  int number = 0;
  for (const std::vector<int64_t>& ordinals : kOrdinals) {
    ASSIGN_OR_RETURN(const State altered, Alter(state, ordinals));
    std::cout << Try(service, job, altered, absl::StrCat("try-", number++)) << std::endl;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace penstock::soak

int main(int argc, char** argv) {
  std::string service;
  std::string job;
  CLI::App app("Begins jobs with altered states");
  app.add_option("--service", service, "the dispatcher, grpc://host:port")->required();
  app.add_option("--job", job, "its name")->required();
  CLI11_PARSE(app, argc, argv);
  if (absl::Status status = penstock::soak::TryAll(service, job); !status.ok()) {
    std::cerr << status << '\n';
    return 1;
  }
  return 0;
}
