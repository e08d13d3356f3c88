// SPDX-License-Identifier: Apache-2.0
// Nodes that follow what they see where the dataset says kAutotune.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include "penstock/dataset.h"
#include "penstock/register.h"
#include "penstock/status.h"

namespace penstock {
namespace {

NodeStats StatsOf(const Iterator& iterator, const std::string& op) {
  for (const NodeStats& node : iterator.Stats().nodes)
    if (node.node.substr(0, node.node.find('#')) == op) return node;
  ADD_FAILURE() << "no node " << op;
  return {};
}

// Waits as for a disk or a server: a millisecond without using a core.
absl::Status AskAServer(CallContext& call) {
  std::mutex mu;
  std::unique_lock lock(mu);
  std::condition_variable answer;
  answer.wait_for(lock, std::chrono::milliseconds(1));
  PENSTOCK_ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, {}));
  out[0] = call.inputs()[0].scalar<int64_t>();
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("test.ask_a_server", 1, Scalar(kInt64), AskAServer);

// Reads until `reached` says so of the Map; how many elements that took.
template <class Reached>
int64_t ReadUntil(Iterator& iterator, Reached reached) {
  for (int64_t i = 0; i < 90'000; ++i) {
    const absl::StatusOr<std::optional<Element>> next = iterator.Next();
    EXPECT_TRUE(next.ok()) << next.status();
    EXPECT_EQ((*next)->tensor(0).scalar<int64_t>(), i);
    if (reached(StatsOf(iterator, "Map"))) return i;
  }
  return -1;
}

TEST(Tuning, CallsThatWaitForOthersGetMoreThreadsThanThereAreCores) {
  Iterator it = *Dataset::Range(100'000)
                     .Map([](Expr x) { return Call("test.ask_a_server", x); })
                     .MakeIterator();
  const int64_t cores = StatsOf(it, "Map").parallelism;
  EXPECT_NE(ReadUntil(it, [&](const NodeStats& map) { return map.parallelism >= 8 * cores; }), -1);
}

TEST(Tuning, AParallelismThatWasAskedForStays) {
  Iterator it =
      *Dataset::Range(1000)
           .Map([](Expr x) { return Call("test.ask_a_server", x); }, {.num_parallel_calls = 4})
           .MakeIterator();
  const int64_t read = ReadUntil(it, [](const NodeStats& map) {
    EXPECT_EQ(map.parallelism, 4);
    return map.elements > 500;
  });
  EXPECT_NE(read, -1);
}

}  // namespace
}  // namespace penstock
