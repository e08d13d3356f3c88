// SPDX-License-Identifier: Apache-2.0
// Files over HTTP from a server that each test scripts.
#include <atomic>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/env/files_until.h"
#include "control/env/scheme_files.h"
#include "control/observe/metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/env/remote/scripted_server.h"
#include "tests/eventually.h"

namespace penstock {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kRange = 64 << 10;

// Returns bytes that differ by position.
std::string Bytes(size_t size) {
  std::string bytes(size, '\0');
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>((i * 2654435761u) >> 11);
  return bytes;
}

FilesConfig Quick() {
  return {.stall_timeout = absl::Seconds(60), .range_bytes = kRange, .ranges_ahead = 3};
}

std::unique_ptr<Files> Make(const FilesConfig& config) {
  return MakeSchemeFiles(config, ProcessEnvironment()).value();
}

std::string ReadAll(File& file, size_t step = 100'000) {
  std::string all;
  std::string piece(step, '\0');
  while (static_cast<int64_t>(all.size()) < file.size()) {
    const absl::StatusOr<size_t> got =
        file.ReadAt(static_cast<int64_t>(all.size()), absl::MakeSpan(piece));
    EXPECT_TRUE(got.ok()) << got.status();
    if (!got.ok() || *got == 0) break;
    all.append(piece, 0, *got);
  }
  return all;
}

TEST(HttpFiles, ReadsAtAnyOffsetAndStopsAtTheEnd) {
  const std::string bytes = Bytes(1'000'000);
  ScriptedServer server([&](const HttpQuestion& question) { return Serve(bytes, question); });
  const auto files = Make(Quick());
  const auto file = files->Open(server.Url("/a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->size(), 1'000'000);
  EXPECT_EQ((*file)->name(), server.Url("/a"));
  std::string piece(300'000, '\0');
  for (const int64_t offset : std::vector<int64_t>{700'000, 0, kRange - 1, 12'345, 700'000}) {
    EXPECT_EQ((*file)->ReadAt(offset, absl::MakeSpan(piece)).value(), piece.size());
    EXPECT_TRUE(piece == bytes.substr(offset, piece.size())) << offset;
  }
  EXPECT_EQ((*file)->ReadAt(999'999, absl::MakeSpan(piece)).value(), 1u);
  EXPECT_EQ((*file)->ReadAt(1'000'000, absl::MakeSpan(piece)).value(), 0u);
  EXPECT_EQ((*file)->ReadAt(2'000'000, absl::MakeSpan(piece)).value(), 0u);
}

TEST(HttpFiles, ASmallFileTakesOneRequest) {
  const std::string bytes = Bytes(5'000);
  ScriptedServer server([&](const HttpQuestion& question) { return Serve(bytes, question); });
  const auto files = Make(Quick());
  const auto file = files->Open(server.Url("/a")).value();
  EXPECT_TRUE(ReadAll(*file) == bytes);
  EXPECT_EQ(server.asked().size(), 1u);
}

TEST(HttpFiles, AnEmptyFileHasNoBytes) {
  for (const bool refuses : {true, false}) {
    ScriptedServer server(
        [&](const HttpQuestion& question) { return refuses ? Serve("", question) : HttpAnswer(); });
    const auto files = Make(Quick());
    const auto file = files->Open(server.Url("/a"));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ((*file)->size(), 0);
    char byte;
    EXPECT_EQ((*file)->ReadAt(0, {&byte, 1}).value(), 0u);
  }
}

TEST(HttpFiles, WithoutRangesSmallFilesAreReadAndLargeOnesRefused) {
  ScriptedServer server([&](const HttpQuestion& question) {
    return HttpAnswer{.body = Bytes(question.target == "/small" ? 5'000 : kRange + 1)};
  });
  const auto files = Make(Quick());
  EXPECT_TRUE(ReadAll(*files->Open(server.Url("/small")).value()) == Bytes(5'000));
  const absl::Status refused = files->Open(server.Url("/large")).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("need a server that supports Range"));
}

TEST(HttpFiles, GoesOnAtTheByteItHadReached) {
  const std::string bytes = Bytes(50'000);
  ScriptedServer server([&](const HttpQuestion& question) {
    HttpAnswer answer = Serve(bytes, question, {"ETag: \"1\""});
    if (question.number < 3) answer.cut_after = 10'000;
    return answer;
  });
  const auto files = Make(Quick());
  const auto file = files->Open(server.Url("/a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(ReadAll(**file) == bytes);
  const std::vector<HttpQuestion> asked = server.asked();
  ASSERT_EQ(asked.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(asked[i].header("range"), absl::StrCat("bytes=", i * 10'000, "-", kRange - 1));
    EXPECT_EQ(asked[i].header("if-match"), i == 0 ? "" : "\"1\"");
  }
}

TEST(HttpFiles, RetriesTransientErrors) {
  const std::string bytes = Bytes(1'000);
  ScriptedServer server([&](const HttpQuestion& question) {
    constexpr int kCodes[] = {503, 429, 500, 502};
    if (question.number < 4) return HttpAnswer{kCodes[question.number], "Later", {}, "busy"};
    if (question.number == 4) return HttpAnswer{.body = "x", .cut_after = 0};
    return Serve(bytes, question);
  });
  Counter& retries =
      ProcessMetrics().GetCounter("penstock_file_retries_total", "", {{"scheme", "http"}});
  const int64_t before = retries.value();
  const auto files = Make(Quick());
  const auto file = files->Open(server.Url("/a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(ReadAll(**file) == bytes);
  EXPECT_GE(retries.value() - before, 4);
}

TEST(HttpFiles, PermanentErrorsFailAtOnceWithTheServersMessage) {
  ScriptedServer server([&](const HttpQuestion& question) {
    if (question.target == "/none") return HttpAnswer{404, "Not Found", {}, ""};
    return HttpAnswer{403, "Forbidden", {"Content-Type: text/plain"}, "not for you\n"};
  });
  const auto files = Make(Quick());
  EXPECT_EQ(files->Open(server.Url("/none")).status(),
            absl::NotFoundError(absl::StrCat("cannot read ", server.Url("/none"),
                                             ": the server answered 404 Not Found")));
  EXPECT_EQ(files->Open(server.Url("/mine")).status(),
            absl::PermissionDeniedError(
                absl::StrCat("cannot read ", server.Url("/mine"),
                             ": the server answered 403 Forbidden: not for you")));
  EXPECT_EQ(server.asked().size(), 2u);
}

TEST(HttpFiles, GivesUpWhenNoByteComesForLong) {
  ScriptedServer server([&](const HttpQuestion&) { return HttpAnswer{503, "Slow Down", {}, ""}; });
  FilesConfig config = Quick();
  config.retry_for = absl::Milliseconds(300);
  const auto files = Make(config);
  const absl::Status status = files->Open(server.Url("/a")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(server.Url("/a")), HasSubstr("503 Slow Down"),
                    HasSubstr("without receiving a byte for 300ms (retry_for of [files])")));
}

TEST(HttpFiles, AServerThatIsNotThereIsUnavailable) {
  std::string url;
  {
    ScriptedServer server([&](const HttpQuestion&) { return HttpAnswer(); });
    url = server.Url("/a");
  }
  FilesConfig config = Quick();
  config.retry_for = absl::Milliseconds(300);
  const absl::Status status = Make(config)->Open(url).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("Failed to connect"));
}

TEST(HttpFiles, ASilentServerIsAskedAgain) {
  const std::string bytes = Bytes(50'000);
  ScriptedServer server([&](const HttpQuestion& question) {
    HttpAnswer answer = Serve(bytes, question);
    answer.stall = question.number == 0;
    if (answer.stall) answer.cut_after = 20'000;
    return answer;
  });
  FilesConfig config = Quick();
  config.stall_timeout = absl::Milliseconds(300);
  const auto files = Make(config);
  const auto file = files->Open(server.Url("/a"));
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_TRUE(ReadAll(**file) == bytes);
  EXPECT_EQ(server.asked()[1].header("range"), absl::StrCat("bytes=20000-", kRange - 1));
}

TEST(HttpFiles, AFileThatChangesIsAnErrorThatNamesIt) {
  // A server that checks If-Match, and one that does not.
  for (const bool heeds : {true, false}) {
    const std::string bytes = Bytes(500'000);
    std::atomic<int> version = 1;
    ScriptedServer server([&](const HttpQuestion& question) {
      const std::string etag = absl::StrCat("\"", version.load(), "\"");
      if (heeds && question.header("if-match") != "" && question.header("if-match") != etag)
        return HttpAnswer{412, "Precondition Failed", {}, ""};
      return Serve(bytes, question, {absl::StrCat("ETag: ", etag)});
    });
    const auto files = Make(Quick());
    const auto file = files->Open(server.Url("/a")).value();
    version = 2;
    char byte;
    const absl::Status status = file->ReadAt(400'000, {&byte, 1}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat(server.Url("/a"), " changed while it was read")));
  }
}

TEST(HttpFiles, WithoutAnETagTheTimeAndTheSizeTell) {
  const std::string bytes = Bytes(500'000);
  const std::string first = "Sat, 21 Nov 2026 10:00:00 GMT";
  std::atomic<int> version = 1;
  ScriptedServer server([&](const HttpQuestion& question) {
    const std::string modified = version == 3 ? "Sat, 21 Nov 2026 11:00:00 GMT" : first;
    return Serve(version == 2 ? bytes + "more" : bytes, question, {"Last-Modified: " + modified});
  });
  const auto files = Make(Quick());
  const auto file = files->Open(server.Url("/a")).value();
  char byte;
  EXPECT_TRUE(file->ReadAt(400'000, {&byte, 1}).ok());
  EXPECT_EQ(server.asked().back().header("if-unmodified-since"), first);
  version = 2;
  EXPECT_EQ(file->ReadAt(400'000, {&byte, 1}).status().code(), absl::StatusCode::kDataLoss);
  version = 3;
  EXPECT_EQ(file->ReadAt(400'000, {&byte, 1}).status().code(), absl::StatusCode::kDataLoss);
}

TEST(HttpFiles, OtherBytesThanRequestedAreRefused) {
  ScriptedServer server([&](const HttpQuestion&) {
    return HttpAnswer{206, "Partial Content", {"Content-Range: bytes 7-9/10"}, "abc"};
  });
  const absl::Status status = Make(Quick())->Open(server.Url("/a")).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("bytes 7-9/10"));
}

TEST(HttpFiles, MoreBytesThanRequestedAreRefused) {
  ScriptedServer server([&](const HttpQuestion&) {
    return HttpAnswer{206,
                      "Partial Content",
                      {absl::StrCat("Content-Range: bytes 0-9/", kRange * 2)},
                      Bytes(kRange * 2)};
  });
  EXPECT_EQ(Make(Quick())->Open(server.Url("/a")).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(HttpFiles, CancellingEndsWaits) {
  FilesConfig patient = Quick();
  patient.retry_for = absl::Hours(1);
  for (const char* target : {"/silent", "/busy"}) {
    for (const bool wrapped : {false, true}) {
      std::stop_source stop;
      ScriptedServer server([&](const HttpQuestion& question) {
        stop.request_stop();
        if (question.target == "/busy") return HttpAnswer{503, "Slow Down", {}, ""};
        return HttpAnswer{.body = "x", .cut_after = 0, .stall = true};
      });
      const auto files = Make(patient);
      const std::string url = server.Url(target);
      const absl::Status status = wrapped ? FilesUntil(*files, stop.get_token()).Open(url).status()
                                          : files->Open(url, stop.get_token()).status();
      EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    }
  }
}

TEST(HttpFiles, CancellingEndsReadsOfAnOpenFile) {
  std::stop_source stop;
  const std::string bytes = Bytes(500'000);
  ScriptedServer server([&](const HttpQuestion& question) {
    HttpAnswer answer = Serve(bytes, question);
    answer.stall = question.number > 0;
    if (question.number > 0) stop.request_stop();
    if (answer.stall) answer.cut_after = 0;
    return answer;
  });
  const auto files = Make(Quick());
  const auto file = files->Open(server.Url("/a"), stop.get_token()).value();
  file->WillReadInOrder(0);
  std::string all(bytes.size(), '\0');
  EXPECT_EQ(file->ReadAt(0, absl::MakeSpan(all)).status().code(), absl::StatusCode::kCancelled);
}

TEST(HttpFiles, FollowsRedirects) {
  const std::string bytes = Bytes(200'000);
  ScriptedServer server([&](const HttpQuestion& question) {
    if (question.target == "/old") return HttpAnswer{302, "Found", {"Location: /new"}, "moved"};
    if (question.target == "/round") return HttpAnswer{302, "Found", {"Location: /round"}, ""};
    return Serve(bytes, question, {"ETag: \"1\""});
  });
  const auto files = Make(Quick());
  EXPECT_TRUE(ReadAll(*files->Open(server.Url("/old")).value()) == bytes);
  EXPECT_EQ(files->Open(server.Url("/round")).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(HttpFiles, InOrderSomeRangesAreOnTheirWayAndNoMore) {
  const std::string bytes = Bytes(10 * kRange);
  ScriptedServer server([&](const HttpQuestion& question) { return Serve(bytes, question); });
  const auto files = Make(Quick());
  const auto file = files->Open(server.Url("/a")).value();
  file->WillReadInOrder(0);
  std::string piece(kRange, '\0');
  // Opening the file read the first range; three more may wait to be read.
  for (int64_t i = 0; i < 7; ++i) {
    ASSERT_TRUE(file->ReadAt(i * kRange, absl::MakeSpan(piece)).ok());
    EXPECT_TRUE(piece == bytes.substr(i * kRange, kRange));
    EXPECT_TRUE(Eventually([&] { return server.asked().size() >= static_cast<size_t>(i + 4); }));
    EXPECT_EQ(server.asked().size(), static_cast<size_t>(i + 4));
  }
  EXPECT_LE(server.connections(), 4);
}

TEST(HttpFiles, TheBudgetOfTheProcessBoundsReadingAhead) {
  const std::string bytes = Bytes(10 * kRange);
  ScriptedServer server([&](const HttpQuestion& question) { return Serve(bytes, question); });
  FilesConfig config = Quick();
  config.read_ahead_bytes = 0;
  const auto files = Make(config);
  const auto file = files->Open(server.Url("/a")).value();
  file->WillReadInOrder(0);
  EXPECT_TRUE(ReadAll(*file) == bytes);
  EXPECT_EQ(server.asked().size(), 10u);
  EXPECT_EQ(server.connections(), 1);
}

TEST(HttpFiles, PassingOverBytesDoesNotFetchThem) {
  const std::string bytes = Bytes(100 * kRange);
  ScriptedServer server([&](const HttpQuestion& question) { return Serve(bytes, question); });
  const auto files = Make(Quick());
  const auto file = files->Open(server.Url("/a")).value();
  file->WillReadInOrder(0);
  char byte;
  ASSERT_TRUE(file->ReadAt(90 * kRange, {&byte, 1}).ok());
  EXPECT_EQ(byte, bytes[90 * kRange]);
  // Going back works too.
  ASSERT_TRUE(file->ReadAt(20 * kRange, {&byte, 1}).ok());
  EXPECT_EQ(byte, bytes[20 * kRange]);
  EXPECT_LT(server.asked().size(), 10u);
}

TEST(HttpFiles, ReadingGoesOnAfterAnError) {
  const std::string bytes = Bytes(10 * kRange);
  std::atomic<bool> broken = true;
  ScriptedServer server([&](const HttpQuestion& question) {
    if (broken && question.number > 0) return HttpAnswer{403, "Forbidden", {}, ""};
    return Serve(bytes, question);
  });
  const auto files = Make(Quick());
  const auto file = files->Open(server.Url("/a")).value();
  file->WillReadInOrder(0);
  std::string all(bytes.size(), '\0');
  EXPECT_EQ(file->ReadAt(0, absl::MakeSpan(all)).status().code(),
            absl::StatusCode::kPermissionDenied);
  broken = false;
  EXPECT_TRUE(ReadAll(*file) == bytes);
}

TEST(HttpFiles, SeveralThreadsReadOneFile) {
  const std::string bytes = Bytes(20 * kRange);
  ScriptedServer server([&](const HttpQuestion& question) { return Serve(bytes, question); });
  const auto files = Make(Quick());
  const auto file = files->Open(server.Url("/a")).value();
  file->WillReadInOrder(0);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { right += ReadAll(*file, 10'000 + i) == bytes; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
}

TEST(HttpFiles, NamesInErrorsHaveNoSecrets) {
  ScriptedServer server([&](const HttpQuestion&) { return HttpAnswer{404, "Not Found", {}, ""}; });
  std::string url = server.Url("/a?key=secret");
  url.insert(7, "me:secret@");
  EXPECT_THAT(std::string(Make(Quick())->Open(url).status().message()), Not(HasSubstr("secret")));
}

TEST(HttpFiles, ThereAreNoListings) {
  const absl::Status status = Make(Quick())->Glob("http://host/*.x").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("give the names"));
}

TEST(SchemeFiles, KnowsLocalFilesByNameAndByScheme) {
  const auto files = Make({});
  EXPECT_TRUE(files->Open("/proc/self/exe").ok());
  EXPECT_TRUE(files->Open("file:///proc/self/exe").ok());
  EXPECT_TRUE(files->Open("file://localhost/proc/self/exe").ok());
  EXPECT_EQ(files->Open("file://other/a").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(files->Glob("file:///proc/sel[f]/exe").value(),
              testing::ElementsAre("file:///proc/self/exe"));
  const absl::Status unknown = files->Open("gs://bucket/a").status();
  EXPECT_EQ(unknown.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(unknown.message()), HasSubstr("http, https or s3"));
}

}  // namespace
}  // namespace penstock
