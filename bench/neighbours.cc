// SPDX-License-Identifier: Apache-2.0
#include "bench/neighbours.h"

#include <atomic>
#include <iostream>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/process.h"
#include "include/status_macros.h"

namespace penstock::bench {
namespace {

constexpr absl::Duration kNeighbourBound = absl::Minutes(2);  // far longer than an answer takes

class NeighboursSide final : public Side {
 public:
  explicit NeighboursSide(Side& alone) : alone_(alone) {}

  absl::Status Start(int neighbours, const std::string& scratch) {
    for (int i = 0; i < neighbours; ++i) {
      ASSIGN_OR_RETURN(neighbours_.emplace_back(),
                       Process::Start({"", "bench-neighbour"}, Process::Ends::kWithInput,
                                      absl::StrCat(scratch, "/neighbour", i, ".log")));
      company_.push_back(neighbours_.back()->pid());
    }
    return SendOrder("rest");
  }

  std::string name() const override { return alone_.name(); }
  const Roles& roles() const override { return alone_.roles(); }
  const std::vector<pid_t>& company() const override { return company_; }
  absl::StatusOr<Done> Read(double seconds) override {
    RETURN_IF_ERROR(SendOrder("work"));
    absl::StatusOr<Done> done = alone_.Read(seconds);
    RETURN_IF_ERROR(SendOrder("rest"));
    return done;
  }

 private:
  absl::Status SendOrder(const std::string& order) {
    for (auto& neighbour : neighbours_) RETURN_IF_ERROR(neighbour->Write(order));
    for (auto& neighbour : neighbours_) {
      RETURN_IF_ERROR(neighbour->ReadLine(kNeighbourBound).status());
    }
    return absl::OkStatus();
  }

  Side& alone_;
  std::vector<std::unique_ptr<Process>> neighbours_;
  std::vector<pid_t> company_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Side>> BesideNeighbours(Side& alone, int neighbours,
                                                       const std::string& scratch) {
  auto beside = std::make_unique<NeighboursSide>(alone);
  RETURN_IF_ERROR(beside->Start(neighbours, scratch));
  return beside;
}

void RunNeighbour() {
  enum : int { kRest, kWork, kOver };
  std::atomic<int> order{kRest};
  std::thread busy([&] {
    while (true) {
      const int now = order.load();
      if (now == kOver) return;
      if (now == kRest) order.wait(kRest);
    }
  });
  for (std::string line; std::getline(std::cin, line);) {
    order = line == "work" ? kWork : kRest;
    order.notify_all();
    std::cout << line << std::endl;
  }
  order = kOver;
  order.notify_all();
  busy.join();
}

}  // namespace penstock::bench
