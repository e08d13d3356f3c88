// SPDX-License-Identifier: Apache-2.0
// Nodes that adapt to their load because the dataset says kAutotune.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>

#include "dataplane/dataset/expr/python_host.h"
#include "include/status_macros.h"
#include "penstock/dataset.h"
#include "penstock/register.h"

namespace penstock {
namespace {

NodeStats StatsOf(const Iterator& iterator, const std::string& op) {
  for (const NodeStats& node : iterator.Stats().nodes)
    if (node.node.substr(0, node.node.find('#')) == op) return node;
  ADD_FAILURE() << "no node " << op;
  return {};
}

// Waits like a call to a disk or server: a millisecond without using a core.
void WaitForAnAnswer() {
  std::mutex mu;
  std::unique_lock lock(mu);
  std::condition_variable answer;
  answer.wait_for(lock, std::chrono::milliseconds(1));
}

absl::Status AskAServer(CallContext& call) {
  WaitForAnAnswer();
  ASSIGN_OR_RETURN(absl::Span<int64_t> out, call.OutputAs<int64_t>(0, {}));
  out[0] = call.inputs()[0].scalar<int64_t>();
  return absl::OkStatus();
}
PENSTOCK_REGISTER_MAP("test.ask_a_server", 1, Scalar(kInt64), AskAServer);

// Reads from element `from` on until `reached` is true for the Map. Returns how many elements came
// before the last one; -1 if it never is.
template <class Reached>
int64_t ReadUntil(Iterator& iterator, Reached reached, int64_t from = 0) {
  for (int64_t i = 0; i < 90'000; ++i) {
    const absl::StatusOr<std::optional<Element>> next = iterator.Next();
    EXPECT_TRUE(next.ok()) << next.status();
    EXPECT_EQ((*next)->tensor(0).scalar<int64_t>(), from + i);
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

// A host of `count` processes that return their argument.
class Processes final : public PythonHost {
 public:
  explicit Processes(int count) : count_(count) {}
  absl::Status Admit(const PythonFunction&) const override { return absl::OkStatus(); }
  absl::Status Call(const std::shared_ptr<const PythonFunction>&, absl::Span<const Tensor> inputs,
                    absl::Span<const TensorSpec>, ElementOutputs& out) override {
    WaitForAnAnswer();
    ASSIGN_OR_RETURN(absl::Span<std::byte> to, out.Output(0, {}));
    const int64_t value = inputs[0].scalar<int64_t>();
    std::memcpy(to.data(), &value, sizeof value);
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<SourceReader>> Open(std::shared_ptr<const PythonFunction>,
                                                     Spec) override {
    return absl::UnimplementedError("no generators");
  }
  int CallsAtOnce() const override { return count_; }
  void Stop() override {}

 private:
  const int count_;
};

TEST(Tuning, CallsOfPythonGetAsManyThreadsAsThereAreProcesses) {
  const auto started = [] {
    return *Dataset::Range(100'000)
                .Map([](Expr x) { return CallPython({.name = "a:b"}, Scalar(kInt64), true, x); })
                .MakeIterator();
  };
  PythonHost::SetOfProcess(std::make_shared<Processes>(1));
  const int64_t cores = StatsOf(started(), "Map").parallelism;
  const auto processes = static_cast<int>(2 * cores + 1);
  PythonHost::SetOfProcess(std::make_shared<Processes>(processes));
  Iterator it = started();
  const int64_t read =
      ReadUntil(it, [&](const NodeStats& map) { return map.parallelism >= 2 * cores; });
  ASSERT_NE(read, -1);
  // Without the bound there would be more threads by then.
  const int64_t most = StatsOf(it, "Map").elements + 2000;
  const auto stays = [&](const NodeStats& map) {
    EXPECT_LE(map.parallelism, processes);
    return map.elements > most;
  };
  EXPECT_NE(ReadUntil(it, stays, read + 1), -1);
  PythonHost::SetOfProcess(nullptr);
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
