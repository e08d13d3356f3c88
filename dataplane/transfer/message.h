// SPDX-License-Identifier: Apache-2.0
// The messages on a link over a network. A message has a header of eight bytes, of which the first
// is the type and the other seven are zero. After the header comes content that depends on the
// type. Numbers are little endian. Elements and frames are not parsed here: a block
// (docs/element.md) follows the header. The protocol decides how messages are delimited: one gRPC
// message each (grpc/), or a length before each (tcp/wire.h).
//
//   client to worker   hello, then updates; goodbye if the client closes on purpose
//   worker to client   welcome, then elements, frames, errors, recalled
//
// A link over several connections (tcp) also has
//
//   client to worker   join, the first and only message on a further connection
//   worker to client   stripes, after the welcome; striped, in place of an element that is
//                      sent on a further connection; such connections carry only elements
//
// A worker closes a link, or refuses a hello, with the call's gRPC status or, in other protocols,
// with `closed`, which is the last message.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "dataplane/transfer/link_versions.h"
#include "dataplane/transfer/transport.h"

#pragma GCC visibility push(default)
namespace penstock::transfer {

// The versions of these messages that this release reads and writes. Neither side sends a message
// or a field of a version above the agreed one, so after the hello whatever is not known is
// malformed.
inline constexpr LinkVersions kLinkVersions = {.lowest = 1, .highest = 1};
inline constexpr size_t kMessageHeaderBytes = 8;
// The maximum size of a frame in bytes. A block that does not fit is sent alone.
inline constexpr size_t kFrameBytes = 256 << 10;
// The maximum size of any other message, in bytes. Some protocols allow clients less
// (unauthenticated_limits.h, tcp/wire.h).
inline constexpr int kMaxControlBytes = 16 << 20;

// Numbers are never reused for a different message.
enum class MessageType : uint8_t {
  kHello = 1,
  kUpdate = 2,
  kGoodbye = 3,
  kJoin = 4,
  kWelcome = 16,
  kElement = 17,
  kFrame = 18,
  kError = 19,
  kRecalled = 20,
  kClosed = 21,
  kCompressed = 22,  // an element or a frame (codec.h), to a client whose hello allows it
  kStripes = 23,
  kStriped = 24,
};

// The client's events since its last message, in this order.
struct Update {
  int64_t received = 0;
  int64_t granted = 0;
  bool recall = false;
  int64_t granted_after_recall = 0;
};
struct Goodbye {};
struct Welcome {};
struct Recalled {
  int64_t count = 0;
};
struct ErrorMessage {
  Identity identity;
  absl::Status error;
};
struct Closed {
  absl::Status reason;  // may be OK
};

// The secret that a further connection presents to join a link. The worker generates it at random
// and sends it on the link.
struct StripeKey {
  uint64_t high = 0, low = 0;
  friend bool operator==(const StripeKey&, const StripeKey&) = default;
};
struct Join {
  StripeKey key;
  uint32_t stripe = 0;  // its number, chosen by the client
};
struct Stripes {
  StripeKey key;
};
struct Striped {
  uint32_t stripe = 0;
};

using Message = std::variant<Hello, Update, Goodbye, Welcome, Recalled, ErrorMessage, Closed, Join,
                             Stripes, Striped>;

std::string Encode(const Hello& hello);
std::string Encode(const Update& update);
std::string Encode(const Goodbye& goodbye);
std::string Encode(const Welcome& welcome);
std::string Encode(const Recalled& recalled);
std::string Encode(const ErrorMessage& error);
std::string Encode(const Closed& closed);
std::string Encode(const Join& join);
std::string Encode(const Stripes& stripes);
std::string Encode(const Striped& striped);

// Appends the message to `bytes`, whose memory can thus be reused.
void Append(const Update& update, std::string& bytes);

// Returns the header of an element or a frame.
std::string EncodeHeader(MessageType type);

// Returns the type of a message that begins with these bytes. InvalidArgument for an unknown type
// and for an incomplete header.
absl::StatusOr<MessageType> TypeOf(std::string_view header);

// Decodes any message except an element or a frame, including its header. InvalidArgument for a
// message that neither side sends in this version, for example one with a number below 0, surplus
// bytes or an unknown type. Surplus bytes of a hello whose client also has a later version are
// ignored. FailedPrecondition for a hello without a common version.
absl::StatusOr<Message> Decode(std::string_view bytes);

// Decodes a client's message: a hello unless `hello_received`; after that, updates and a goodbye.
// InvalidArgument for any other message.
absl::StatusOr<Message> DecodeFromClient(std::string_view bytes, bool hello_received);

}  // namespace penstock::transfer
#pragma GCC visibility pop
