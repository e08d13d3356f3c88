// SPDX-License-Identifier: Apache-2.0
// How much a running pipeline remembers of the states that it gave: only what later ones need.
#include <gtest/gtest.h>
#include <malloc.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/base/config.h"
#include "penstock/dataset.h"
#include "penstock/expr.h"

namespace penstock {
namespace {

struct Case {
  const char* name;
  std::function<Dataset(const Dataset&)> behind;
};
void PrintTo(const Case& its, std::ostream* out) {
  *out << its.name;
}

class Saving : public testing::TestWithParam<Case> {
 protected:
  // In this process, in bytes.
  static int64_t Allocated() { return static_cast<int64_t>(mallinfo2().uordblks); }
};

TEST_P(Saving, KeepsNothingOfStatesThatWereGiven) {
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  GTEST_SKIP() << "a sanitizer's allocator does not say what is allocated";
#endif
  absl::StatusOr<Iterator> it = GetParam().behind(Dataset::Range(int64_t{1} << 40)).MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  const auto save_behind = [&](int elements) {
    for (int i = 0; i < elements; ++i) {
      ASSERT_TRUE(it->Next().ok());
      ASSERT_TRUE(it->Save().ok());
    }
  };
  save_behind(2000);
  const int64_t before = Allocated();
  save_behind(8000);
  EXPECT_LT(Allocated() - before, 200'000);  // 25 bytes per state
}

Expr Same(const Expr& n) {
  return n;
}

INSTANTIATE_TEST_SUITE_P(
    Nodes, Saving,
    testing::Values(
        Case{"Skip", [](const Dataset& input) { return input.Skip(10); }},
        Case{"Take", [](const Dataset& input) { return input.Take(int64_t{1} << 30); }},
        Case{"Map", [](const Dataset& input) { return input.Map(Same); }},
        Case{"MapInOrder",
             [](const Dataset& input) { return input.Map(Same, {.num_parallel_calls = 4}); }},
        Case{"Filter",
             [](const Dataset& input) {
               return input.Filter([](const Expr& n) { return n >= 0; });
             }},
        Case{"Batch", [](const Dataset& input) { return input.Batch(3); }},
        Case{"Unbatch", [](const Dataset& input) { return input.Batch(3).Unbatch(); }},
        Case{"Shuffle", [](const Dataset& input) { return input.Shuffle(100); }},
        Case{"Prefetch", [](const Dataset& input) { return input.Prefetch(8); }},
        Case{"PrefetchOfSkip", [](const Dataset& input) { return input.Skip(3).Prefetch(8); }},
        Case{"Interleave",
             [](const Dataset& input) {
               return input.Interleave([](const Expr&) { return Dataset::Range(5); },
                                       {.cycle_length = 3});
             }},
        Case{"Window", [](const Dataset& input) { return input.Window(3).Batch(); }},
        Case{"Zip",
             [](const Dataset& input) {
               return Dataset::Zip({input, input.Skip(1)});
             }}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace penstock
