// SPDX-License-Identifier: Apache-2.0
// Reading that waits for a server ends when it is stopped. If the wait could not be ended, these
// tests would hang.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>

#include "penstock/dataset.h"
#include "penstock/map.h"
#include "penstock/sources.h"
#include "tests/control/env/remote/scripted_server.h"
#include "tests/eventually.h"

namespace penstock {
namespace {

// Reads `dataset` until the server has got `asked` requests, then stops the reading.
void ExpectStops(const Dataset& dataset, const ScriptedServer& server, size_t asked) {
  absl::StatusOr<Iterator> it = dataset.MakeIterator();
  ASSERT_TRUE(it.ok()) << it.status();
  absl::Status status;
  std::thread reader([&] { status = it->Next().status(); });
  EXPECT_TRUE(Eventually([&] { return server.asked().size() >= asked; }));
  EXPECT_TRUE(it->Stop().ok());
  reader.join();
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
}

HttpAnswer Silence(const HttpQuestion&) {
  return {.body = "x", .cut_after = 0, .stall = true};
}

Dataset Named(const std::string& url) {
  return Dataset::FromTensors(url);
}

TEST(Stopping, EndsAFunctionThatWaitsForAFile) {
  ScriptedServer server(Silence);
  const Dataset read = Named(server.Url("/a")).Map([](Expr name) { return ReadFile(name); });
  ExpectStops(read, server, 1);
}

TEST(Stopping, EndsFunctionsOfSeveralThreadsThatWait) {
  ScriptedServer server(Silence);
  const std::string url = server.Url("/a");
  const Dataset read = Dataset::FromTensorSlices<std::string>({url, url, url, url})
                           .Map([](Expr name) { return ReadFile(name); }, {.num_parallel_calls = 4})
                           .Batch(4);
  ExpectStops(read, server, 2);  // from the pool's only thread, and from the reader
}

TEST(Stopping, EndsAFunctionThatWaitsForTheRestOfAFile) {
  const std::string bytes(20 << 20, 'x');  // several ranges
  ScriptedServer server([&](const HttpQuestion& question) {
    if (question.number > 0) return Silence(question);
    return Serve(bytes, question);
  });
  const Dataset read = Named(server.Url("/a")).Map([](Expr name) { return ReadFile(name); });
  ExpectStops(read, server, 2);
}

TEST(Stopping, EndsFunctionsThatDecide) {
  ScriptedServer server(Silence);
  const Dataset read =
      Named(server.Url("/a")).Filter([](Expr name) { return StringLength(ReadFile(name)) > 0; });
  ExpectStops(read, server, 1);
}

TEST(Stopping, EndsSourcesThatWait) {
  const auto sources = {
      std::function<Dataset(const std::string&)>(
          [](const std::string& url) { return Dataset::TFRecord(url); }),
      std::function<Dataset(const std::string&)>(
          [](const std::string& url) { return Dataset::TextLine(url); }),
      std::function<Dataset(const std::string&)>(
          [](const std::string& url) { return Dataset::TarShards(url, {"txt"}); }),
  };
  for (const auto& source : sources) {
    ScriptedServer server(Silence);
    ExpectStops(source(server.Url("/a")), server, 1);
  }
}

}  // namespace
}  // namespace penstock
