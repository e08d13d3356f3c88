// SPDX-License-Identifier: Apache-2.0
#include "dataplane/replica/collective/frame_loop.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <future>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::replica {
namespace {

using transfer::tcp::Socket;

constexpr std::chrono::seconds kSilence(3);
constexpr size_t kPrefixBytes = 4;

// Returns two ends of one connection, the first as a loop needs it.
std::pair<Socket, Socket> Connection() {
  int ends[2];
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  EXPECT_EQ(::fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  return {Socket(ends[0]), Socket(ends[1])};
}

// The loop's own heartbeats, one every 200 ms, measure how long the frame takes: longer than the
// allowed silence.
TEST(FrameLoop, AFrameThatTakesLongToComeIsNoSilence) {
  auto [near, far] = Connection();
  std::promise<std::string> heard;
  std::vector<Socket> peers;
  peers.push_back(std::move(near));
  auto loop = FrameLoop::Start(
      std::move(peers), kSilence,
      {.on_frame = [&](size_t, std::string_view frame) { heard.set_value(std::string(frame)); },
       .on_gone = [&](size_t, const absl::Status& why) { heard.set_value(why.ToString()); }});
  ASSERT_TRUE(loop.ok()) << loop.status();
  const std::string frame(16, 'x');
  const std::string bytes = std::string("\x10\0\0\0", kPrefixBytes) + frame;
  for (const char byte : bytes) {
    char beat[kPrefixBytes];
    if (::recv(far.fd(), beat, sizeof(beat), MSG_WAITALL) != sizeof(beat)) break;  // it hung up
    ASSERT_EQ(::send(far.fd(), &byte, 1, MSG_NOSIGNAL), 1);
  }
  EXPECT_EQ(heard.get_future().get(), frame);
  (*loop)->Stop();
}

}  // namespace
}  // namespace penstock::replica
