// SPDX-License-Identifier: Apache-2.0
#include "tools/simulator/engine/trace.h"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/simulator/one_process.h"

namespace penstock::simulator {
namespace {

using ::testing::SizeIs;

TEST(Trace, HashDependsOnEachPartAndOnTheOrder) {
  std::set<uint64_t> hashes;
  for (int i = 0; i < 6; ++i) {
    Trace trace;
    trace.Add(AtSecond(i == 1), i == 2 ? "b" : "a", i == 3, i == 4, i == 5 ? "bytes" : "");
    hashes.insert(trace.hash());
    trace.Add(AtSecond(0), "next", 0, 0);
    hashes.insert(trace.hash());
    EXPECT_EQ(trace.entries(), 2);
  }
  EXPECT_THAT(hashes, SizeIs(12));
}

TEST(Trace, PrintsALineForEachEntry) {
  char* text = nullptr;
  size_t size = 0;
  std::FILE* const out = open_memstream(&text, &size);
  Trace trace(out);
  trace.Add(AtSecond(0.25), "switch", 2, 17);
  trace.Add(AtSecond(1), "message", 3, 4, "a\n");
  std::fclose(out);
  EXPECT_STREQ(text,
               "2023-11-14 22:13:20.250000000 switch 2 17\n"
               "2023-11-14 22:13:21.000000000 message 3 4 2 bytes: a\\n\n");
  std::free(text);
}

}  // namespace
}  // namespace penstock::simulator
