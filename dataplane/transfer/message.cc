// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/message.h"

#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock::transfer {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are sent in memory order");

class Writer {
 public:
  // Appends to `before`.
  explicit Writer(MessageType type, std::string before = {}) : bytes_(std::move(before)) {
    bytes_ += EncodeHeader(type);
  }

  template <class T>
  void Number(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void Bytes(std::string_view bytes) {
    Number<uint64_t>(bytes.size());
    bytes_.append(bytes);
  }
  void Status(const absl::Status& status) {
    Number<int32_t>(static_cast<int32_t>(status.code()));
    Bytes(std::string(status.message()));
  }
  std::string Done() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads the output of Writer. After the first invalid field, all values are zero and ok() is false.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T Number() {
    T value = 0;
    if (rest_.size() < sizeof(T)) return Fail<T>();
    std::memcpy(&value, rest_.data(), sizeof(T));
    rest_.remove_prefix(sizeof(T));
    return value;
  }
  // Reads a count or a size: 0 … 2^62, so that the sum of two cannot overflow.
  int64_t Count() {
    int64_t value = Number<int64_t>();
    return value < 0 || value > int64_t{1} << 62 ? Fail<int64_t>() : value;
  }
  std::string_view Bytes() {
    uint64_t size = Number<uint64_t>();
    if (size > rest_.size()) return Fail<std::string_view>();
    std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }
  // Reads the number of the items that follow, each of at least `bytes` bytes.
  uint64_t Repeated(size_t bytes) {
    uint64_t count = Number<uint64_t>();
    return count > rest_.size() / bytes ? Fail<uint64_t>() : count;
  }

  void Invalidate() {
    ok_ = false;
    rest_ = {};
  }
  void IgnoreRest() { rest_ = {}; }
  bool ok() const { return ok_; }
  bool done() const { return ok_ && rest_.empty(); }

 private:
  template <class T>
  T Fail() {
    Invalidate();
    return T();
  }

  std::string_view rest_;
  bool ok_ = true;
};

Hello ReadHello(Reader& reader) {
  Hello hello;
  hello.token = reader.Bytes();
  hello.client = ClientId(reader.Number<uint64_t>());
  hello.incarnation = Incarnation(reader.Number<uint64_t>());
  hello.iteration = IterationId(reader.Number<uint64_t>());
  uint64_t holdings = reader.Repeated(3 * sizeof(uint64_t));
  for (uint64_t h = 0; h < holdings && reader.ok(); ++h) {
    Holding holding;
    holding.partition = PartitionId(reader.Number<uint64_t>());
    holding.placement = Placement(reader.Number<uint64_t>());
    uint64_t intervals = reader.Repeated(2 * sizeof(int64_t));
    for (uint64_t i = 0; i < intervals && reader.ok(); ++i) {
      Index begin = reader.Count();
      int64_t length = reader.Count();
      // Intervals must be in order, so that a hostile set cannot cost more memory or time than its
      // size in bytes warrants.
      if (length == 0 || (i > 0 && begin <= holding.indices.end())) reader.Invalidate();
      holding.indices.Add(begin, begin + length);
    }
    hello.holdings.push_back(std::move(holding));
  }
  if (!reader.done()) {
    const auto compression = reader.Number<uint8_t>();
    if (compression == static_cast<uint8_t>(LinkCompression::kNone) ||
        compression > static_cast<uint8_t>(LinkCompression::kLz4)) {
      reader.Invalidate();
    }
    hello.compression = static_cast<LinkCompression>(compression);
  }
  return hello;
}

Update ReadUpdate(Reader& reader) {
  Update update;
  update.received = reader.Count();
  update.granted = reader.Count();
  update.recall = reader.Number<uint8_t>() != 0;
  update.granted_after_recall = reader.Count();
  return update;
}

absl::Status ReadStatus(Reader& reader) {
  int code = reader.Number<int32_t>();
  std::string_view text = reader.Bytes();
  // A code from a later release is still an error.
  if (code < 0 || code > static_cast<int>(absl::StatusCode::kUnauthenticated)) {
    code = static_cast<int>(absl::StatusCode::kUnknown);
  }
  return absl::Status(static_cast<absl::StatusCode>(code), std::string(text));
}

ErrorMessage ReadError(Reader& reader) {
  ErrorMessage message;
  message.identity.job = JobId(reader.Number<uint64_t>());
  message.identity.iteration = IterationId(reader.Number<uint64_t>());
  message.identity.partition = PartitionId(reader.Number<uint64_t>());
  message.identity.placement = Placement(reader.Number<uint64_t>());
  message.identity.index = reader.Number<int64_t>();
  message.identity.round = reader.Number<int64_t>();
  message.identity.consumer = reader.Number<int32_t>();
  message.error = ReadStatus(reader);
  if (message.error.ok()) message.error = absl::UnknownError("the error has no code");
  return message;
}

StripeKey ReadKey(Reader& reader) {
  StripeKey key;
  key.high = reader.Number<uint64_t>();
  key.low = reader.Number<uint64_t>();
  return key;
}

// Reads the message after its header; a hello is read from its version on.
absl::StatusOr<Message> ReadBody(MessageType type, Reader& reader) {
  switch (type) {
    case MessageType::kHello: {
      const LinkVersions client = UnpackLinkVersions(reader.Number<uint32_t>());
      if (reader.ok()) RETURN_IF_ERROR(Agree(kLinkVersions, client).status());
      Hello hello = ReadHello(reader);
      if (client.highest > kLinkVersions.highest) reader.IgnoreRest();
      return hello;
    }
    case MessageType::kUpdate:
      return ReadUpdate(reader);
    case MessageType::kGoodbye:
      return Goodbye();
    case MessageType::kWelcome:
      return Welcome();
    case MessageType::kRecalled:
      return Recalled{reader.Count()};
    case MessageType::kError:
      return ReadError(reader);
    case MessageType::kClosed:
      return Closed{ReadStatus(reader)};
    case MessageType::kJoin: {
      const StripeKey key = ReadKey(reader);
      return Join{key, reader.Number<uint32_t>()};
    }
    case MessageType::kStripes:
      return Stripes{ReadKey(reader)};
    case MessageType::kStriped:
      return Striped{reader.Number<uint32_t>()};
    case MessageType::kElement:
    case MessageType::kFrame:
    case MessageType::kCompressed:
      break;
  }
  return absl::InvalidArgumentError("an element arrived where only control messages are allowed");
}

}  // namespace

std::string EncodeHeader(MessageType type) {
  std::string header(kMessageHeaderBytes, '\0');
  header[0] = static_cast<char>(type);
  return header;
}

std::string Encode(const Hello& hello) {
  Writer writer(MessageType::kHello);
  writer.Number(Pack(kLinkVersions));
  writer.Bytes(hello.token);
  writer.Number(hello.client.value());
  writer.Number(hello.incarnation.value());
  writer.Number(hello.iteration.value());
  writer.Number<uint64_t>(hello.holdings.size());
  for (const Holding& holding : hello.holdings) {
    writer.Number(holding.partition.value());
    writer.Number(holding.placement.value());
    writer.Number<uint64_t>(holding.indices.intervals().size());
    for (const IndexSet::Interval& interval : holding.indices.intervals()) {
      writer.Number(interval.begin);
      writer.Number(interval.end - interval.begin);
    }
  }
  if (hello.compression != LinkCompression::kNone) {
    writer.Number(static_cast<uint8_t>(hello.compression));
  }
  return std::move(writer).Done();
}

std::string Encode(const Update& update) {
  std::string bytes;
  Append(update, bytes);
  return bytes;
}

void Append(const Update& update, std::string& bytes) {
  Writer writer(MessageType::kUpdate, std::move(bytes));
  writer.Number(update.received);
  writer.Number(update.granted);
  writer.Number<uint8_t>(update.recall);
  writer.Number(update.granted_after_recall);
  bytes = std::move(writer).Done();
}

std::string Encode(const Goodbye&) {
  return EncodeHeader(MessageType::kGoodbye);
}

std::string Encode(const Welcome&) {
  return EncodeHeader(MessageType::kWelcome);
}

std::string Encode(const Recalled& recalled) {
  Writer writer(MessageType::kRecalled);
  writer.Number(recalled.count);
  return std::move(writer).Done();
}

std::string Encode(const ErrorMessage& error) {
  Writer writer(MessageType::kError);
  writer.Number(error.identity.job.value());
  writer.Number(error.identity.iteration.value());
  writer.Number(error.identity.partition.value());
  writer.Number(error.identity.placement.value());
  writer.Number(error.identity.index);
  writer.Number(error.identity.round);
  writer.Number(error.identity.consumer);
  writer.Status(error.error);
  return std::move(writer).Done();
}

std::string Encode(const Closed& closed) {
  Writer writer(MessageType::kClosed);
  writer.Status(closed.reason);
  return std::move(writer).Done();
}

std::string Encode(const Join& join) {
  Writer writer(MessageType::kJoin);
  writer.Number(join.key.high);
  writer.Number(join.key.low);
  writer.Number(join.stripe);
  return std::move(writer).Done();
}

std::string Encode(const Stripes& stripes) {
  Writer writer(MessageType::kStripes);
  writer.Number(stripes.key.high);
  writer.Number(stripes.key.low);
  return std::move(writer).Done();
}

std::string Encode(const Striped& striped) {
  Writer writer(MessageType::kStriped);
  writer.Number(striped.stripe);
  return std::move(writer).Done();
}

absl::StatusOr<MessageType> TypeOf(std::string_view header) {
  if (header.size() < kMessageHeaderBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a message of ", header.size(), " bytes has no header"));
  }
  const auto type = static_cast<MessageType>(header[0]);
  for (char zero : header.substr(1, kMessageHeaderBytes - 1)) {
    if (zero != 0) return absl::InvalidArgumentError("reserved bytes of a message are not zero");
  }
  switch (type) {
    case MessageType::kHello:
    case MessageType::kUpdate:
    case MessageType::kGoodbye:
    case MessageType::kWelcome:
    case MessageType::kElement:
    case MessageType::kFrame:
    case MessageType::kError:
    case MessageType::kRecalled:
    case MessageType::kClosed:
    case MessageType::kCompressed:
    case MessageType::kJoin:
    case MessageType::kStripes:
    case MessageType::kStriped:
      return type;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a message has the unknown type ", static_cast<int>(type)));
}

absl::StatusOr<Message> Decode(std::string_view bytes) {
  ASSIGN_OR_RETURN(MessageType type, TypeOf(bytes));
  Reader reader(bytes.substr(kMessageHeaderBytes));
  ASSIGN_OR_RETURN(Message message, ReadBody(type, reader));
  if (!reader.done()) {
    return absl::InvalidArgumentError(absl::StrCat("a message of type ", static_cast<int>(type),
                                                   " with ", bytes.size(), " bytes is malformed"));
  }
  return message;
}

absl::StatusOr<Message> DecodeFromClient(std::string_view bytes, bool hello_received) {
  ASSIGN_OR_RETURN(Message message, Decode(bytes));
  const bool hello = std::holds_alternative<Hello>(message);
  if (!hello_received && !hello)
    return absl::InvalidArgumentError("the first message of a link must be a hello");
  if (hello_received && !std::holds_alternative<Update>(message) &&
      !std::holds_alternative<Goodbye>(message)) {
    return absl::InvalidArgumentError("the client sent an unexpected message");
  }
  return message;
}

}  // namespace penstock::transfer
