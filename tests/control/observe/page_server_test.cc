// SPDX-License-Identifier: Apache-2.0
#include "control/observe/page_server.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "control/observe/html.h"
#include "control/observe/page_maker.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/control/observe/count_refused.h"
#include "tests/control/observe/descriptors_left.h"

namespace penstock {
namespace {

using ::testing::HasSubstr;

int NewSocket() {
  return socket(AF_INET, SOCK_STREAM, 0);
}

// Connects and returns `fd`. If nobody listens, nothing can be sent over it.
int Connect(int port, int fd = NewSocket()) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* at = nullptr;
  EXPECT_EQ(getaddrinfo("127.0.0.1", absl::StrCat(port).c_str(), &hints, &at), 0);
  std::ignore = connect(fd, at->ai_addr, at->ai_addrlen);
  freeaddrinfo(at);
  return fd;
}

// Returns the whole answer to one request.
std::string AskOver(int fd, const std::string& request) {
  EXPECT_EQ(send(fd, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
  std::string answer;
  char piece[512];
  for (ssize_t got; (got = recv(fd, piece, sizeof piece, 0)) > 0;) {
    answer.append(piece, static_cast<size_t>(got));
  }
  close(fd);
  return answer;
}
std::string Ask(int port, const std::string& request) {
  return AskOver(Connect(port), request);
}

TEST(PageServer, ServesItsPagesAndListsThem) {
  auto server = PageServer::Start("127.0.0.1", 0, {{"/metrics", [] { return "four 4\n"; }}});
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->port();
  EXPECT_THAT(Ask(port, "GET /metrics HTTP/1.1\r\n\r\n"), HasSubstr("200 OK"));
  EXPECT_THAT(Ask(port, "GET /metrics HTTP/1.1\r\n\r\n"), HasSubstr("\r\n\r\nfour 4\n"));
  EXPECT_THAT(Ask(port, "GET /else HTTP/1.1\r\n\r\n"), HasSubstr("404"));
  EXPECT_THAT(Ask(port, "GET /else HTTP/1.1\r\n\r\n"), HasSubstr("/metrics"));
  EXPECT_THAT(Ask(port, "PUT /metrics HTTP/1.1\r\n\r\n"), HasSubstr("405"));
  EXPECT_EQ(PageServer::Start("127.0.0.1", port, {}).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST(PageServer, MakesAPageForTheViewerWhomItAdmits) {
  const auto admit = [](const std::string& token,
                        const std::string& address) -> absl::StatusOr<std::string> {
    EXPECT_THAT(address, testing::StartsWith("127.0.0.1:"));
    if (token == "worker") return absl::PermissionDeniedError("not for workers");
    if (token.empty()) return absl::UnauthenticatedError("a token, please");
    return "viewer " + token;
  };
  auto server = PageServer::StartFor(
      "127.0.0.1", 0, {{"/", [](const std::string& viewer) { return viewer; }}}, admit);
  ASSERT_TRUE(server.ok()) << server.status();
  const auto ask = [&](const std::string& authorization) {
    return Ask((*server)->port(), "GET / HTTP/1.1\r\n" + authorization + "\r\n");
  };
  EXPECT_THAT(ask("Authorization: Bearer a\r\n"), HasSubstr("\r\n\r\nviewer a"));
  EXPECT_THAT(ask("Authorization: Basic dTpi\r\n"), HasSubstr("\r\n\r\nviewer b"));  // u:b
  const std::string stranger = ask("");
  EXPECT_THAT(stranger, HasSubstr("401"));
  EXPECT_THAT(stranger, HasSubstr("WWW-Authenticate"));
  EXPECT_THAT(stranger, HasSubstr("a token, please"));
  EXPECT_THAT(ask("Authorization: Bearer worker\r\n"), HasSubstr("403"));
}

// Connections that each send a byte every 1.5 s, as long as the object lives.
class SlowClients {
 public:
  SlowClients(int port, int count) {
    for (int i = 0; i < count; ++i) fds_.push_back(Connect(port));
    thread_ = std::jthread([this](std::stop_token stop) {
      while (!stop.stop_requested()) {
        for (int fd : fds_) std::ignore = send(fd, "G", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        for (int i = 0; i < 30 && !stop.stop_requested(); ++i) usleep(50'000);
      }
    });
  }
  ~SlowClients() {
    thread_ = {};
    for (int fd : fds_) close(fd);
  }
  // Waits until the server has closed the connection with this number.
  void AwaitClosed(size_t number) const {
    char byte;
    while (recv(fds_[number], &byte, 1, 0) > 0) {
    }
  }

 private:
  std::vector<int> fds_;
  std::jthread thread_;
};

TEST(PageServer, SlowClientsDelayNeitherOthersNorTheStop) {
  auto server = PageServer::Start("127.0.0.1", 0, {{"/", [] { return "here"; }}});
  ASSERT_TRUE(server.ok()) << server.status();
  const SlowClients slow((*server)->port(), 20);
  for (int i = 0; i < 3; ++i) {
    const absl::Time before = absl::Now();
    EXPECT_THAT(Ask((*server)->port(), "GET / HTTP/1.1\r\n\r\n"), HasSubstr("here"));
    EXPECT_LT(absl::Now() - before, absl::Seconds(1));
  }
  const absl::Time before = absl::Now();
  server->reset();
  EXPECT_LT(absl::Now() - before, absl::Seconds(1));
}

TEST(PageServer, ARequestHasADeadlineNoMatterInHowManyPieces) {
  const int64_t late = RefusedSoFar("pages", "too_late");
  auto server = PageServer::Start("127.0.0.1", 0, {{"/", [] { return "here"; }}}, "",
                                  {.patience = std::chrono::milliseconds(300)});
  ASSERT_TRUE(server.ok()) << server.status();
  const int fd = Connect((*server)->port());
  const absl::Time before = absl::Now();
  while (send(fd, "G", 1, MSG_NOSIGNAL) == 1 && absl::Now() < before + absl::Seconds(20)) {
    usleep(20'000);
  }
  close(fd);
  EXPECT_LT(absl::Now() - before, absl::Seconds(10));
  EXPECT_EQ(RefusedSoFar("pages", "too_late"), late + 1);
}

TEST(PageServer, AnAnswerThatNobodyReadsHasADeadline) {
  const int64_t late = RefusedSoFar("pages", "too_late");
  auto server =
      PageServer::Start("127.0.0.1", 0, {{"/", [] { return std::string(64 << 20, 'x'); }}}, "",
                        {.patience = std::chrono::milliseconds(300)});
  ASSERT_TRUE(server.ok()) << server.status();
  const int fd = Connect((*server)->port());
  EXPECT_GT(send(fd, "GET / HTTP/1.1\r\n\r\n", 18, 0), 0);
  for (int i = 0; i < 200 && RefusedSoFar("pages", "too_late") == late; ++i) usleep(50'000);
  EXPECT_EQ(RefusedSoFar("pages", "too_late"), late + 1);
  close(fd);
}

TEST(PageServer, ClosesTheOldestOfTooManyConnections) {
  const int64_t many = RefusedSoFar("pages", "too_many");
  auto server =
      PageServer::Start("127.0.0.1", 0, {{"/", [] { return "here"; }}}, "", {.connections = 3});
  ASSERT_TRUE(server.ok()) << server.status();
  const SlowClients slow((*server)->port(), 3);
  EXPECT_THAT(Ask((*server)->port(), "GET / HTTP/1.1\r\n\r\n"), HasSubstr("here"));
  slow.AwaitClosed(0);
  EXPECT_EQ(RefusedSoFar("pages", "too_many"), many + 1);
}

TEST(PageServer, RefusesALongRequest) {
  const int64_t long_ones = RefusedSoFar("pages", "too_long");
  auto server = PageServer::Start("127.0.0.1", 0, {{"/", [] { return "here"; }}}, "",
                                  {.request_bytes = 1000});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string path(900, 'x');
  EXPECT_THAT(Ask((*server)->port(), absl::StrCat("GET /", path, " HTTP/1.1\r\n\r\n")),
              HasSubstr("404"));
  Ask((*server)->port(), absl::StrCat("GET /", path, path, " HTTP/1.1\r\n\r\n"));
  EXPECT_EQ(RefusedSoFar("pages", "too_long"), long_ones + 1);
  EXPECT_THAT(Ask((*server)->port(), "GET / HTTP/1.1\r\n\r\n"), HasSubstr("here"));
}

// A page that takes long delays no other page, and is made once for all who wait for it.
TEST(PageServer, ASlowPageDelaysNoOther) {
  std::atomic<int> made = 0;
  std::atomic<bool> open = false;
  auto server =
      PageServer::Start("127.0.0.1", 0, {{"/", [] { return "here"; }}, {"/slow", [&] {
                                                                          ++made;
                                                                          while (!open)
                                                                            usleep(10'000);
                                                                          return "slow";
                                                                        }}});
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->port();
  std::vector<std::future<std::string>> slow;
  for (int i = 0; i < 5; ++i) {
    slow.push_back(
        std::async(std::launch::async, [port] { return Ask(port, "GET /slow HTTP/1.1\r\n\r\n"); }));
  }
  while (made == 0) usleep(1'000);
  EXPECT_THAT(Ask(port, "GET / HTTP/1.1\r\n\r\n"), HasSubstr("here"));
  usleep(200'000);  // so that all five requests have arrived
  open = true;
  for (auto& answer : slow) EXPECT_THAT(answer.get(), HasSubstr("slow"));
  EXPECT_LE(made, 2);
}

// A page that takes long must not keep the connections of all who have asked for it meanwhile.
// No viewer gets the text of another, even if both wait while a third text is being made.
TEST(PageMaker, MakesOneTextForEachViewer) {
  std::promise<void> begun, go_on;
  std::atomic<int> made = 0;
  PageMaker maker([&](const std::string& viewer) {
    if (++made == 1) {
      begun.set_value();
      go_on.get_future().wait();
    }
    return viewer;
  });
  ASSERT_TRUE(maker.Start("/").ok());
  const auto asker = std::make_shared<int>();
  std::array<std::promise<std::string>, 4> texts;
  const std::array<const char*, 4> viewers = {"a", "b", "a", "b"};
  const auto ask = [&](size_t i) {
    maker.Request(viewers[i], asker, [&, i](PageMaker::Text text) { texts[i].set_value(*text); });
  };
  ask(0);
  begun.get_future().wait();
  for (const size_t i : {1, 2, 3}) ask(i);
  go_on.set_value();
  for (size_t i = 0; i < viewers.size(); ++i) EXPECT_EQ(texts[i].get_future().get(), viewers[i]);
  EXPECT_EQ(made, 3);
}

TEST(PageMaker, ForgetsWhoHasGone) {
  std::atomic<int> made = 0;
  std::atomic<bool> open = false;
  PageMaker maker([&](const std::string& /*viewer*/) {
    for (++made; !open;) usleep(10'000);
    return "slow";
  });
  ASSERT_TRUE(maker.Start("/slow").ok());
  const auto stays = std::make_shared<int>();
  maker.Request("", stays, [](PageMaker::Text) {});
  while (made == 0) usleep(1'000);
  auto gone = std::make_shared<int>();
  const auto kept = std::make_shared<int>();
  maker.Request("", gone, [kept](PageMaker::Text) {});
  EXPECT_EQ(kept.use_count(), 2);
  gone.reset();
  maker.Request("", stays, [](PageMaker::Text) {});
  EXPECT_EQ(kept.use_count(), 1);
  open = true;
}

TEST(PageServer, WithoutADescriptorForAnAskerItWaitsForOneAndSleeps) {
  auto server = PageServer::Start("127.0.0.1", 0, {{"/", [] { return "here"; }}});
  ASSERT_TRUE(server.ok()) << server.status();
  const int fd = NewSocket();
  {
    const DescriptorsLeft none(0);
    Connect((*server)->port(), fd);
    EXPECT_LT(CpuTimeOfASecond(), absl::Milliseconds(300));
  }
  EXPECT_THAT(AskOver(fd, "GET / HTTP/1.1\r\n\r\n"), HasSubstr("here"));
}

TEST(PageServer, MarksHtmlAndRequiresItsToken) {
  auto server = PageServer::Start(
      "127.0.0.1", 0, {{"/", [] { return HtmlPage("a <b>", HtmlTable("t", {"x"}, {{"<&\">"}})); }}},
      "secret");
  ASSERT_TRUE(server.ok()) << server.status();
  const int port = (*server)->port();
  const std::string refused = Ask(port, "GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(refused, HasSubstr("401 Unauthorized"));
  EXPECT_THAT(refused, testing::Not(HasSubstr("table")));
  for (const char* shown : {"Bearer secre", "Bearer secrets", "Basic c2VjcmV0", "secret"}) {
    EXPECT_THAT(Ask(port, absl::StrCat("GET / HTTP/1.1\r\nAuthorization: ", shown, "\r\n\r\n")),
                HasSubstr("401 Unauthorized"));
  }
  EXPECT_THAT(Ask(port, "GET / HTTP/1.1\r\nAuthorization: Basic YTpzZWNyZXQ=\r\n\r\n"),
              HasSubstr("<h1>a"));
  const std::string page = Ask(port, "GET / HTTP/1.1\r\nAuthorization: Bearer secret\r\n\r\n");
  EXPECT_THAT(page, HasSubstr("Content-Type: text/html"));
  EXPECT_THAT(page, HasSubstr("<h1>a &lt;b&gt;</h1>"));
  EXPECT_THAT(page, HasSubstr("<td>&lt;&amp;&quot;&gt;</td>"));
}

}  // namespace
}  // namespace penstock
