// SPDX-License-Identifier: Apache-2.0
#include "penstock/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "include/status_macros.h"
#include "penstock/penstock.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

absl::Status Clock(CallContext& call) {
  ASSIGN_OR_RETURN(const absl::Span<int64_t> out, call.OutputAs<int64_t>(0, {}));
  out[0] = 1;
  return absl::OkStatus();
}
[[maybe_unused]] const bool registered =
    RegisterMap("clock",
                {.version = 2,
                 .output_spec = [](const Spec&) -> absl::StatusOr<Spec> { return Scalar(kInt64); },
                 .call = Clock,
                 .deterministic = false})
        .ok();

TEST(Explain, ShowsTheTreeAndThePerPartitionNodes) {
  EXPECT_EQ(Dataset::Range(5).Take(2).Explain(),
            "Take#1 count=2 -> TensorSpec([], int64), 2\n"
            "  | works per partition\n"
            "  Range#0 start=0 step=1 stop=5 -> TensorSpec([], int64), 5\n");
}

TEST(Explain, SaysWhichWayAFunctionGoes) {
  const std::string text = Dataset::Range(5)
                               .Map([](auto x) { return Call("clock", x) + 1; })
                               .Map([](auto x) { return ReduceSum(Reshape(x, {1})); })
                               .Batch(2)
                               .Prefetch()
                               .Explain();
  EXPECT_THAT(text,
              AllOf(HasSubstr("Prefetch#4 buffer_size=auto"), HasSubstr("num_parallel_calls=auto"),
                    HasSubstr("    | function: traced, each result into its row of the "
                              "block of Batch#3\n"),
                    HasSubstr("| function: traced and registered 'clock' version 2 "
                              "(not deterministic)\n")));
}

TEST(Explain, SaysWhereAFunctionGoesOverManyRows) {
  EXPECT_THAT(
      Dataset::Range(5).Map([](auto x) { return x * x; }).Batch(2).Explain(),
      HasSubstr("  | function: traced, over many rows at once, into the block of Batch#2\n"));
}

TEST(Explain, NamesTheStepsThatRunAsOne) {
  const std::string text = Dataset::FromTensors("no image")
                               .Map([](auto x) { return Resize(DecodeJpegImage(x), 8, 8); })
                               .Explain();
  EXPECT_THAT(text, HasSubstr("function: traced, DecodeJpegImage + Resize as one step"));
}

TEST(Explain, ShowsAMistakeAtItsNode) {
  EXPECT_THAT(Dataset::Range(5).Batch(0).Explain(),
              HasSubstr("-> INVALID_ARGUMENT: Batch#1: batch_size must be at least 1, not 0\n"));
}

TEST(Explain, ShowsMeasurements) {
  const Dataset data =
      Dataset::Range(10).Map([](auto x) { return x * x; }, {.num_parallel_calls = 1});
  EXPECT_THAT(data.Explain(), Not(HasSubstr("elements")));
  Iterator it = *data.MakeIterator();
  while ((*it.Next()).has_value()) {
  }
  EXPECT_THAT(Explain(data, it.Stats()),
              AllOf(HasSubstr("  | 10 elements, "), HasSubstr("1 calls at a time")));
}

}  // namespace
}  // namespace penstock
