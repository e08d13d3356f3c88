// SPDX-License-Identifier: Apache-2.0
// Range: int64 scalars, one per element, handed out by splits. The limit is not the machine's, but
// 10⁶ elements/s, which a service must reach to not slow down a pipeline of small elements.
#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/limits/limits.h"
#include "bench/workload.h"

namespace penstock::bench {
namespace {

int64_t ScalarCount(const Setup& setup) {
  return std::clamp<int64_t>(static_cast<int64_t>(setup.window_s * 5e6), 10'000, 10'000'000);
}

// Checks that each number of a pass comes once.
class ScalarReader final : public Reader {
 public:
  explicit ScalarReader(int64_t count) : seen_(count) {}

  absl::StatusOr<int64_t> Take(const Element& element) override {
    const int64_t number = element.tensor(0).scalar<int64_t>();
    if (number < 0 || number >= static_cast<int64_t>(seen_.size()) || seen_[number]) {
      return absl::DataLossError(absl::StrCat("the number ", number, " came twice"));
    }
    seen_[number] = true;
    ++count_;
    return sizeof number;
  }
  absl::Status EndOfPass() override {
    if (count_ != seen_.size()) {
      return absl::DataLossError(
          absl::StrCat(seen_.size() - count_, " of ", seen_.size(), " numbers are missing"));
    }
    seen_.assign(seen_.size(), false);
    count_ = 0;
    return absl::OkStatus();
  }

 private:
  std::vector<bool> seen_;
  size_t count_ = 0;
};

class Scalars final : public Workload {
 public:
  std::string_view name() const override { return "Range"; }
  std::string_view question() const override { return "scalars, each an element of its own"; }
  std::vector<int64_t> sizes() const override { return {8}; }
  bool sized() const override { return false; }
  bool tiny() const override { return true; }
  ShardingPolicy mode() const override { return ShardingPolicy::kDynamic; }
  int64_t max_outstanding_requests() const override { return 0; }

  Dataset MakeDataset(const Setup& setup) const override {
    return Dataset::Range(ScalarCount(setup));
  }
  std::unique_ptr<Reader> MakeReader(const Setup& setup) const override {
    return std::make_unique<ScalarReader>(ScalarCount(setup));
  }
  absl::StatusOr<std::unique_ptr<Side>> MakeLimit(const Setup& /*setup*/) const override {
    return MakeBar("bar 1e6/s", 1e6, sizeof(int64_t));
  }
};

}  // namespace

const Workload& Range() {
  static const Scalars& range = *new Scalars;
  return range;
}

}  // namespace penstock::bench
