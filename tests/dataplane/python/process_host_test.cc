// SPDX-License-Identifier: Apache-2.0
// Functions that hang, and processes that die. PYTHON is an interpreter with NumPy, FUNCTIONS the
// folder of behaviours.py.
#include "dataplane/python/process_host.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "penstock/iterator.h"

namespace penstock::python_host {
namespace {

// One element, 7, on which that function of behaviours.py is called.
Dataset Mapped(const std::string& function) {
  return Dataset::Range(7, 8).Map([&](Expr x) {
    return CallPython({.name = absl::StrCat("behaviours:", function),
                       .pickle = "",
                       .version = "",
                       .call = R"({"kind": "map", "input": ["t", [0]], "output": 0,)"
                               R"( "dtypes": ["int64"], "shapes": [[]]})"},
                      Scalar(kInt64), /*deterministic=*/true, x);
  });
}

absl::StatusOr<int64_t> ValueOf(const std::string& function) {
  absl::StatusOr<Iterator> it = Mapped(function).MakeIterator();
  if (!it.ok()) return it.status();
  absl::StatusOr<std::optional<Element>> element = it->Next();
  if (!element.ok()) return element.status();
  return (*element)->tensor(0).scalar<int64_t>();
}

// A host with one process.
class ProcessHostTest : public testing::Test {
 protected:
  ProcessHostTest() {
    std::string folder = testing::TempDir() + "penstock-host-XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    ::setenv("PENSTOCK_TEST_FOLDER", folder_.c_str(), 1);
    PythonHost::SetOfProcess(
        ProcessHost::Create({.processes = 1, .command = {PYTHON, {FUNCTIONS}}, .allowed = {}}));
  }
  ~ProcessHostTest() override { PythonHost::OfProcess()->Stop(); }

  std::string folder_;
};

TEST_F(ProcessHostTest, AFunctionThatHangsHoldsUpNobodyOnceItsReadingIsStopped) {
  const std::string fifo = folder_ + "/hangs";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Iterator hangs = Mapped("hangs").MakeIterator().value();
  auto hung = std::async(std::launch::async, [&] { return hangs.Next().status(); });
  ASSERT_EQ(std::ifstream(fifo).get(), '!');  // the function has begun
  auto waits = std::async(std::launch::async, [&] { return ValueOf("same"); });
  hangs.Stop(absl::Seconds(60)).IgnoreError();
  EXPECT_EQ(hung.get().code(), absl::StatusCode::kCancelled);
  const absl::StatusOr<int64_t> value = waits.get();
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, 7);
}

TEST_F(ProcessHostTest, StoppingTheReadingEndsAWaitForAProcess) {
  const std::string fifo = folder_ + "/hangs";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  Iterator hangs = Mapped("hangs").MakeIterator().value();
  auto hung = std::async(std::launch::async, [&] { return hangs.Next().status(); });
  ASSERT_EQ(std::ifstream(fifo).get(), '!');
  Iterator waits = Mapped("same").MakeIterator().value();
  auto waiting = std::async(std::launch::async, [&] { return waits.Next().status(); });
  waits.Stop(absl::Seconds(60)).IgnoreError();
  EXPECT_EQ(waiting.get().code(), absl::StatusCode::kCancelled);
  hangs.Stop(absl::Seconds(60)).IgnoreError();
  EXPECT_EQ(hung.get().code(), absl::StatusCode::kCancelled);
}

TEST_F(ProcessHostTest, TheDeathOfAnIdleProcessIsNoTry) {
  const absl::StatusOr<int64_t> pid = ValueOf("pid");
  ASSERT_TRUE(pid.ok()) << pid.status();
  ASSERT_EQ(::kill(static_cast<pid_t>(*pid), SIGKILL), 0);
  siginfo_t ended;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(*pid), &ended, WEXITED | WNOWAIT), 0);
  const absl::StatusOr<int64_t> value = ValueOf("dies_once");
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(*value, 7);
}

}  // namespace
}  // namespace penstock::python_host
