// SPDX-License-Identifier: Apache-2.0
// Reads small elements and now and then a large one, checks each, and prints after every 5,000 how
// many it has read, until its standard input ends.
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "include/status_macros.h"
#include "tools/soak/numbers.h"

namespace penstock::soak {
namespace {

constexpr int64_t kEndless = int64_t{1} << 40;
constexpr int64_t kSmallPerLarge = 100;
constexpr int64_t kReportEvery = 5'000;

struct Options {
  std::string service;
  std::string protocol = "auto";
  int64_t large_words = 20'000;
  double rate = 0;  // limit of elements a second; 0: none
};

bool InputEnded() {
  pollfd in{.fd = STDIN_FILENO, .events = POLLIN};
  return ::poll(&in, 1, 0) != 0;
}

absl::StatusOr<Iterator> Open(const Options& options, int64_t words) {
  return Numbers(kEndless, words)
      .Distribute({.processing_mode = ShardingPolicy::kDynamic,
                   .service = options.service,
                   .data_transfer_protocol = options.protocol})
      .MakeIterator();
}

absl::Status ReadOne(Iterator& it, int64_t words) {
  ASSIGN_OR_RETURN(std::optional<Element> element, it.Next());
  if (!element.has_value()) return absl::OutOfRangeError("an endless job has ended");
  if (IsWhole(*element, words)) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("element ", NumberOf(*element), " has wrong bytes"));
}

absl::Status Soak(const Options& options) {
  ASSIGN_OR_RETURN(Iterator small, Open(options, 1));
  ASSIGN_OR_RETURN(Iterator large, Open(options, options.large_words));
  const absl::Time began = absl::Now();
  for (int64_t read = 1;; ++read) {
    const bool is_large = read % kSmallPerLarge == 0;
    RETURN_IF_ERROR(ReadOne(is_large ? large : small, is_large ? options.large_words : 1));
    if (is_large && options.rate > 0) {
      absl::SleepFor(began + absl::Seconds(read / options.rate) - absl::Now());
    }
    if (read % kReportEvery != 0) continue;
    std::cout << "read " << read << std::endl;
    if (InputEnded()) return absl::OkStatus();
  }
}

}  // namespace
}  // namespace penstock::soak

int main(int argc, char** argv) {
  penstock::soak::Options options;
  CLI::App app("Reads without end");
  app.add_option("--service", options.service, "the dispatcher, grpc://host:port")->required();
  app.add_option("--protocol", options.protocol, "data_transfer_protocol");
  app.add_option("--large-words", options.large_words, "int64 values in a large element");
  app.add_option("--rate", options.rate, "elements a second at most; 0: no bound");
  CLI11_PARSE(app, argc, argv);
  if (absl::Status status = penstock::soak::Soak(options); !status.ok()) {
    std::cerr << status << '\n';
    return 1;
  }
  return 0;
}
