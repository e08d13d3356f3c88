// SPDX-License-Identifier: Apache-2.0
// The cost of a position of Shuffle, counted at its source.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "include/status_macros.h"
#include "penstock/plugin.h"
#include "tests/dataplane/dataset/suite.h"

namespace penstock {
namespace {

int64_t numbers_read = 0;  // by the readers below, in this thread

class CountedNumbers final : public SourceReader {
 public:
  explicit CountedNumbers(int64_t count) : count_(count) {}

  absl::Status Open(int64_t) override {
    next_ = 0;
    return absl::OkStatus();
  }
  absl::StatusOr<bool> Next(ElementOutputs& out) override {
    if (next_ == count_) return false;
    ++numbers_read;
    ASSIGN_OR_RETURN(absl::Span<int64_t> value, out.OutputAs<int64_t>(0, {}));
    value[0] = next_++;
    return true;
  }
  absl::StatusOr<std::string> Save() override { return std::to_string(next_); }
  absl::Status Restore(std::string_view position) override {
    next_ = std::stoll(std::string(position));
    return absl::OkStatus();
  }

 private:
  const int64_t count_;
  int64_t next_ = 0;
};

Dataset Counted(int64_t count) {
  static const absl::Status registered = RegisterSource(
      "test.counted_numbers",
      {.describe = [](const Params& params) -> absl::StatusOr<SourceInfo> {
         ASSIGN_OR_RETURN(const int64_t n, ParamOf<int64_t>(params, "count"));
         return SourceInfo{.spec = Spec(Scalar(kInt64)), .cardinality = n};
       },
       .open = [](const Params& params) -> absl::StatusOr<std::unique_ptr<SourceReader>> {
         ASSIGN_OR_RETURN(const int64_t n, ParamOf<int64_t>(params, "count"));
         return std::make_unique<CountedNumbers>(n);
       }});
  EXPECT_TRUE(registered.ok()) << registered;
  return FromSource("test.counted_numbers", {{"count", count}});
}

// Restores `position`; returns how many elements were read for that.
int64_t CostOf(suite::Reading& reading, const std::string& position) {
  numbers_read = 0;
  EXPECT_TRUE(reading.Restore(position).ok());
  return numbers_read;
}

TEST(Shuffle, APositionReadsAgainAtMostFiveBuffers) {
  for (int64_t buffer : {1, 2, 7, 100}) {
    const Dataset dataset = Counted(3000).Shuffle(buffer, {.seed = 5});
    suite::Reading reading(dataset, {});
    int64_t dearest = 0;
    for (int64_t i = 0; i < 3000; ++i) {
      if (i % 37 == 0 || i > 2990) {
        const std::string saved = reading.Save();
        suite::Reading restored(dataset, {});
        const int64_t cost = CostOf(restored, saved);
        ASSERT_LE(cost, 5 * buffer) << "at " << i;
        dearest = std::max(dearest, cost);
        // A position saved by a restored reading costs no more.
        suite::Reading again(dataset, {});
        ASSERT_LE(CostOf(again, restored.Save()), 5 * buffer) << "at " << i;
        suite::Reading whole(dataset, {});
        ASSERT_EQ(CostOf(whole, reading.Save()), cost);
        ASSERT_EQ(whole.Next(), again.Next()) << "at " << i;
      }
      reading.Next();
    }
    EXPECT_GE(dearest, 3 * buffer) << "nothing was held for long: this shows little";
  }
}

TEST(Shuffle, APositionThatIsNotItsIsRefused) {
  suite::Reading reading(Counted(50).Shuffle(20, {.seed = 5}), {});
  for (int i = 0; i < 30; ++i) reading.Next();
  const std::string saved = reading.Save();
  suite::Reading shorter(Counted(40).Shuffle(20, {.seed = 5}), {});
  EXPECT_FALSE(shorter.Restore(saved).ok());
}

}  // namespace
}  // namespace penstock
