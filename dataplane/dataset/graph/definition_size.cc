// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/graph/definition_size.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "control/proto/dataset.pb.h"

namespace penstock {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kDeepest = 100;  // nested messages; Protobuf parses no more

// Returns whether the field has values of this type. Protobuf keeps any other value as unknown.
bool IsOfItsType(const FieldDescriptor* field, WireFormatLite::WireType written) {
  if (field == nullptr) return false;
  const auto type = static_cast<WireFormatLite::FieldType>(field->type());
  const bool packed = field->is_packable() && written == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  return packed || written == WireFormatLite::WireTypeForFieldType(type);
}

// Walks over the messages in the bytes, and counts their parts.
class PartCount {
 public:
  // False if the bytes end too early, or once there is too much of something.
  bool Message(CodedInputStream& in, const Descriptor& type, int depth) {
    if (depth > kDeepest) return false;
    while (const uint32_t tag = in.ReadTag()) {
      const WireFormatLite::WireType written = WireFormatLite::GetTagWireType(tag);
      const FieldDescriptor* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      if (!IsOfItsType(field, written)) field = nullptr;
      bool read = false;
      if (written == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
        read = Sized(in, field, depth);
      } else if (written == WireFormatLite::WIRETYPE_START_GROUP) {
        has_group_ = true;
      } else {
        ++(field != nullptr && field->is_repeated() ? numbers_ : single_numbers_);
        read = WireFormatLite::SkipField(&in, tag);
      }
      if (!read || !Within().ok()) return false;
    }
    return true;
  }

  absl::Status Within() const {
    if (has_group_) {
      return absl::InvalidArgumentError(
          "the bytes are not a dataset definition: they contain a group of Protobuf");
    }
    if (operations_ > kMostOperations) return TooMany("operations", kMostOperations);
    if (parts_ > kMostDefinitionParts)
      return TooMany("parts (attributes, specs)", kMostDefinitionParts);
    if (strings_ > kMostStrings)
      return TooMany("strings; name many files by a pattern", kMostStrings);
    if (numbers_ > kMostNumbers) return TooMany("numbers in lists", kMostNumbers);
    if (single_numbers_ > kMostSingleNumbers)
      return TooMany("numbers outside lists", kMostSingleNumbers);
    return absl::OkStatus();
  }

 private:
  static absl::Status TooMany(std::string_view what, int64_t most) {
    return absl::InvalidArgumentError(
        absl::StrCat("the definition has more than ", most, " ", std::string(what)));
  }

  // A message, a string, or a list of numbers. `field`: null if it is unknown.
  bool Sized(CodedInputStream& in, const FieldDescriptor* field, int depth) {
    uint32_t bytes = 0;
    if (!in.ReadVarint32(&bytes)) return false;
    if (field == nullptr) ++parts_;
    if (field == nullptr || field->message_type() == nullptr) {
      if (field != nullptr && field->is_repeated()) CountList(in, *field, bytes);
      return in.Skip(static_cast<int>(bytes));
    }
    ++parts_;
    if (field->message_type() == dataset::wire::Operation::descriptor()) ++operations_;
    const CodedInputStream::Limit outer = in.PushLimit(static_cast<int>(bytes));
    const bool read = Message(in, *field->message_type(), depth + 1);
    in.PopLimit(outer);
    return read;
  }

  // Counts what begins at the present position, which does not change.
  void CountList(CodedInputStream& in, const FieldDescriptor& field, uint32_t bytes) {
    if (field.type() == FieldDescriptor::TYPE_BYTES) {
      ++strings_;
    } else if (field.type() == FieldDescriptor::TYPE_DOUBLE) {
      numbers_ += bytes / sizeof(double);
    } else {
      const void* data = nullptr;
      int left = 0;
      if (!in.GetDirectBufferPointer(&data, &left)) return;
      const auto* first = static_cast<const uint8_t*>(data);
      numbers_ += std::count_if(first, first + std::min<int64_t>(bytes, left),
                                [](uint8_t byte) { return byte < 0x80; });  // it ends a number
    }
  }

  int64_t operations_ = 0;
  int64_t parts_ = 0;
  int64_t strings_ = 0;
  int64_t numbers_ = 0;
  int64_t single_numbers_ = 0;
  bool has_group_ = false;
};

}  // namespace

absl::Status CheckSize(std::string_view definition) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(definition.data()),
                      static_cast<int>(definition.size()));
  PartCount count;
  count.Message(in, *dataset::wire::Dataset::descriptor(), 0);
  return count.Within();
}

}  // namespace penstock
