// SPDX-License-Identifier: Apache-2.0
// Reads a named job to its end each time its standard input says "epoch", with a new iterator, and
// prints the number of elements and the size of its state in bytes. With --endless the job repeats
// its dataset before it is distributed, and an epoch has a fixed number of elements.
#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>
#include <string>

#include "include/status_macros.h"
#include "tools/soak/numbers.h"

namespace penstock::soak {
namespace {

struct Options {
  std::string service;
  std::string protocol = "auto";
  int64_t elements = 10'000;
  bool commits = false;
  bool endless = false;
};

class Reading {
 public:
  explicit Reading(const Options& options) : options_(options) {
    Dataset numbers = Numbers(options.elements, 1);
    if (options.endless) numbers = numbers.Repeat(kForever);
    dataset_ = numbers.Distribute(
        {.processing_mode = ShardingPolicy::kDynamic,
         .service = options.service,
         .job_name = "epochs",
         .data_transfer_protocol = options.protocol,
         .ack_mode = options.commits ? AckMode::kOnCommit : AckMode::kOnDelivery});
  }

  absl::Status Epoch() {
    if (!iterator_.has_value()) {
      ASSIGN_OR_RETURN(iterator_, dataset_->MakeIterator());
    }
    int64_t read = 0;
    size_t state_bytes = 0;
    while (!options_.endless || read < options_.elements) {
      ASSIGN_OR_RETURN(const std::optional<Element> element, iterator_->Next());
      if (!element.has_value()) break;
      ++read;
    }
    if (options_.commits) {
      ASSIGN_OR_RETURN(const State state, iterator_->Save());
      RETURN_IF_ERROR(iterator_->Commit(state));
      state_bytes = state.bytes.size();
    }
    if (!options_.endless) iterator_.reset();
    std::cout << "read " << read << " state " << state_bytes << std::endl;
    return absl::OkStatus();
  }

 private:
  const Options options_;
  std::optional<Dataset> dataset_;
  std::optional<Iterator> iterator_;
};

absl::Status Run(const Options& options) {
  Reading reading(options);
  for (std::string line; std::getline(std::cin, line);) RETURN_IF_ERROR(reading.Epoch());
  return absl::OkStatus();
}

}  // namespace
}  // namespace penstock::soak

int main(int argc, char** argv) {
  penstock::soak::Options options;
  CLI::App app("Reads a job epoch by epoch");
  app.add_option("--service", options.service, "the dispatcher, grpc://host:port")->required();
  app.add_option("--protocol", options.protocol, "data_transfer_protocol");
  app.add_option("--elements", options.elements, "of an epoch");
  app.add_flag("--commits", options.commits,
               "ack_mode = kOnCommit: a state is committed at each end");
  app.add_flag("--endless", options.endless, "repeats before Distribute");
  CLI11_PARSE(app, argc, argv);
  if (absl::Status status = penstock::soak::Run(options); !status.ok()) {
    std::cerr << status << '\n';
    return 1;
  }
  return 0;
}
