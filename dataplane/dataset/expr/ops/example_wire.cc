// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/ops/example_wire.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

// A field of a message. `bytes` has the contents of a kLength or fixed-width field.
struct WireField {
  uint32_t number = 0;
  uint32_t type = 0;
  uint64_t varint = 0;
  std::string_view bytes;
};

// Reads one field after another.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  bool AtEnd() const { return at_ == bytes_.size(); }

  absl::StatusOr<WireField> Next() {
    uint64_t tag = 0;
    WireField field;
    if (!Varint(tag) || tag > UINT32_MAX) return Broken("an invalid tag");
    field.number = static_cast<uint32_t>(tag >> 3);
    field.type = tag & 7;
    if (field.number == 0) return Broken("field number 0");
    uint64_t length = 0;
    switch (field.type) {
      case kVarint:
        if (!Varint(field.varint)) return Broken("an invalid varint");
        return field;
      case kFixed64:
        length = 8;
        break;
      case kFixed32:
        length = 4;
        break;
      case kLength:
        if (!Varint(length)) return Broken("an invalid length");
        break;
      default:
        return Broken("an unknown wire type");
    }
    if (length > bytes_.size() - at_) return Broken("a field that extends past the end");
    field.bytes = bytes_.substr(at_, length);
    at_ += length;
    return field;
  }

  bool Varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (AtEnd()) return false;
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      if (shift < 64) value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  absl::Status Broken(const char* what) const {
    return absl::DataLossError(absl::StrCat("malformed tf.train.Example, before byte ", at_,
                                            " of a message of ", bytes_.size(), " bytes: ", what));
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

// Calls message(bytes) for each field with this number whose wire type is kLength (a message or a
// string). Skips other fields, as Protobuf does with unknown ones.
template <class Message>
absl::Status ForEachMessage(std::string_view bytes, uint32_t number, Message&& message) {
  WireReader reader(bytes);
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const WireField field, reader.Next());
    if (field.number == number && field.type == kLength) RETURN_IF_ERROR(message(field.bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ForEachFeature(std::string_view example,
                            absl::FunctionRef<void(std::string_view, std::string_view)> feature) {
  return ForEachMessage(example, 1, [&](std::string_view features) {
    return ForEachMessage(features, 1, [&](std::string_view entry) -> absl::Status {
      std::string_view name, value;
      WireReader reader(entry);
      while (!reader.AtEnd()) {
        ASSIGN_OR_RETURN(const WireField field, reader.Next());
        if (field.type != kLength) continue;
        if (field.number == 1) name = field.bytes;
        if (field.number == 2) value = field.bytes;
      }
      feature(name, value);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<WireFeature> ReadFeature(std::string_view bytes) {
  WireFeature feature;
  WireReader reader(bytes);
  while (!reader.AtEnd()) {
    ASSIGN_OR_RETURN(const WireField field, reader.Next());
    if (field.type != kLength || field.number > 3) continue;
    const auto kind = static_cast<WireFeature::Kind>(field.number);
    if (kind != feature.kind) feature.lists.clear();
    feature.kind = kind;
    feature.lists.push_back(field.bytes);
  }
  return feature;
}

absl::Status ForEachBytes(const WireFeature& feature,
                          absl::FunctionRef<void(std::string_view)> value) {
  for (std::string_view list : feature.lists) {
    RETURN_IF_ERROR(ForEachMessage(list, 1, [&](std::string_view bytes) {
      value(bytes);
      return absl::OkStatus();
    }));
  }
  return absl::OkStatus();
}

absl::Status ForEachFloat(const WireFeature& feature, absl::FunctionRef<void(float)> value) {
  for (std::string_view list : feature.lists) {
    WireReader reader(list);
    while (!reader.AtEnd()) {
      ASSIGN_OR_RETURN(const WireField field, reader.Next());
      if (field.number != 1 || (field.type != kLength && field.type != kFixed32)) continue;
      if (field.bytes.size() % sizeof(float) != 0)
        return reader.Broken("an invalid list of floats");
      for (size_t at = 0; at < field.bytes.size(); at += sizeof(float)) {
        float number;
        std::memcpy(&number, field.bytes.data() + at, sizeof number);
        value(number);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ForEachInt(const WireFeature& feature, absl::FunctionRef<void(int64_t)> value) {
  for (std::string_view list : feature.lists) {
    WireReader reader(list);
    while (!reader.AtEnd()) {
      ASSIGN_OR_RETURN(const WireField field, reader.Next());
      if (field.number != 1) continue;
      if (field.type == kVarint) value(static_cast<int64_t>(field.varint));
      if (field.type != kLength) continue;
      WireReader packed(field.bytes);
      while (!packed.AtEnd()) {
        uint64_t number = 0;
        if (!packed.Varint(number)) return packed.Broken("an invalid varint");
        value(static_cast<int64_t>(number));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock
