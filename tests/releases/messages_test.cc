// SPDX-License-Identifier: Apache-2.0
// The messages of earlier releases arrive as they were sent, and are sent as they arrived.
#include <cstdlib>
#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "control/proto/messages_proto.h"
#include "gtest/gtest.h"
#include "tests/releases/later_release.h"
#include "tests/releases/recorded_messages.h"
#include "tests/releases/recording.h"

namespace penstock::control {
namespace {

template <class Wire, class Message>
struct Stream {
  const char* name;
  std::map<std::string, Message> messages;
};

// Calls visit(stream) for each of the four streams.
template <class Visit>
void ForEachStream(Visit visit) {
  visit(Stream<wire::ClientUp, ClientUp>{"client_up", RecordedClientUps()});
  visit(Stream<wire::ClientDown, ClientDown>{"client_down", RecordedClientDowns()});
  visit(Stream<wire::WorkerUp, WorkerUp>{"worker_up", RecordedWorkerUps()});
  visit(Stream<wire::WorkerDown, WorkerDown>{"worker_down", RecordedWorkerDowns()});
}

template <class Wire, class Message>
std::string BytesOf(const Message& message) {
  Wire wire;
  ToWire(message, &wire);
  return wire.SerializeAsString();
}

template <class Wire, class Message>
void ExpectArrives(const std::string& bytes, const Message& expected) {
  Wire wire;
  ASSERT_TRUE(wire.ParseFromString(bytes));
  const absl::StatusOr<Message> message = FromWire(wire);
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_TRUE(*message == expected) << wire.DebugString();
  EXPECT_EQ((BytesOf<Wire>(*message)), bytes) << wire.DebugString();
}

TEST(MessagesOfReleases, ArriveAsTheyWereSent) {
  ASSERT_FALSE(RecordedReleases().empty());
  for (const std::string& release : RecordedReleases()) {
    size_t arrived = 0;
    const std::vector<NamedBytes> lines = ReadRecording(release + "/messages.txt");
    ForEachStream([&]<class Wire, class Message>(const Stream<Wire, Message>& stream) {
      std::set<size_t> kinds;
      for (const auto& [name, bytes] : lines) {
        const std::string prefix = absl::StrCat(stream.name, ".");
        if (!name.starts_with(prefix)) continue;
        SCOPED_TRACE(absl::StrCat(release, " ", name));
        const auto expected = stream.messages.find(name.substr(prefix.size()));
        ASSERT_NE(expected, stream.messages.end());
        ExpectArrives<Wire>(bytes, expected->second);
        kinds.insert(expected->second.index());
        ++arrived;
      }
      EXPECT_GT(kinds.size(), 6u) << release << " " << stream.name;
    });
    EXPECT_EQ(arrived, lines.size());
  }
}

TEST(MessagesOfReleases, ContainEachKind) {
  ForEachStream([]<class Wire, class Message>(const Stream<Wire, Message>& stream) {
    std::set<size_t> kinds;
    for (const auto& [name, message] : stream.messages) kinds.insert(message.index());
    EXPECT_EQ(kinds.size(), std::variant_size_v<Message>) << stream.name;
  });
}

// --- A later release ---

TEST(MessagesOfALaterRelease, AreSkippedAndCounted) {
  ForEachStream([]<class Wire, class Message>(const Stream<Wire, Message>& stream) {
    SCOPED_TRACE(stream.name);
    const int64_t before = later::IgnoredOn(stream.name);
    Wire wire;
    ASSERT_TRUE(wire.ParseFromString(later::Unknown()));
    const absl::StatusOr<std::optional<Message>> message = FromStream(wire);
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_FALSE(message->has_value());
    EXPECT_EQ(later::IgnoredOn(stream.name), before + 1);
  });
}

TEST(MessagesOfALaterRelease, HaveFieldsThatAreIgnored) {
  ForEachStream([]<class Wire, class Message>(const Stream<Wire, Message>& stream) {
    for (const auto& [name, expected] : stream.messages) {
      SCOPED_TRACE(absl::StrCat(stream.name, " ", name));
      Wire wire;
      ToWire(expected, &wire);
      later::AddFields(wire);
      Wire parsed;
      ASSERT_TRUE(parsed.ParseFromString(wire.SerializeAsString()));
      const absl::StatusOr<std::optional<Message>> message = FromStream(parsed);
      ASSERT_TRUE(message.ok()) << message.status();
      ASSERT_TRUE(message->has_value());
      EXPECT_TRUE(**message == expected) << wire.DebugString();
    }
  });
}

TEST(MessagesOfALaterRelease, AreStillRefusedIfAKnownKindIsMalformed) {
  wire::WorkerUp wire;
  wire.mutable_ended()->set_elements(-1);
  later::AddFields(wire);
  EXPECT_EQ(FromStream(wire).status().code(), absl::StatusCode::kInvalidArgument);
}

// Records this release (README.md).
TEST(MessagesOfReleases, DISABLED_Record) {
  const char* folder = std::getenv("PENSTOCK_RECORD_TO");
  ASSERT_NE(folder, nullptr);
  std::vector<NamedBytes> lines;
  ForEachStream([&]<class Wire, class Message>(const Stream<Wire, Message>& stream) {
    for (const auto& [name, message] : stream.messages) {
      lines.emplace_back(absl::StrCat(stream.name, ".", name), BytesOf<Wire>(message));
    }
  });
  WriteRecording(absl::StrCat(folder, "/messages.txt"), lines);
}

}  // namespace
}  // namespace penstock::control
