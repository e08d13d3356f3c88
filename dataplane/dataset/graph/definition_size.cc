// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/graph/definition_size.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include "absl/strings/str_cat.h"
#include "control/proto/dataset.pb.h"

namespace penstock {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

constexpr int kDeepest = 100;  // nested messages; Protobuf parses no more

// Walks over the messages in the bytes, and counts their parts.
class PartCount {
 public:
  // False if the bytes end too early, or once there is too much of something.
  bool Message(CodedInputStream& in, const Descriptor& type, int depth) {
    if (depth > kDeepest) return false;
    while (const uint32_t tag = in.ReadTag()) {
      const FieldDescriptor* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      const bool sized =
          WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
      const bool read = sized ? Sized(in, field, depth) : WireFormatLite::SkipField(&in, tag);
      if (!sized && field != nullptr && field->is_repeated()) ++numbers_;
      if (!read || !Within().ok()) return false;
    }
    return true;
  }

  absl::Status Within() const {
    if (operations_ > kMostOperations) return TooMany("operations", kMostOperations);
    if (parts_ > kMostDefinitionParts)
      return TooMany("parts (attributes, specs)", kMostDefinitionParts);
    if (strings_ > kMostStrings)
      return TooMany("strings; name many files by a pattern", kMostStrings);
    if (numbers_ > kMostNumbers) return TooMany("numbers in lists", kMostNumbers);
    return absl::OkStatus();
  }

 private:
  static absl::Status TooMany(std::string_view what, int64_t most) {
    return absl::InvalidArgumentError(
        absl::StrCat("the definition has more than ", most, " ", std::string(what)));
  }

  // A message, a string, or a list of numbers.
  bool Sized(CodedInputStream& in, const FieldDescriptor* field, int depth) {
    uint32_t bytes = 0;
    if (!in.ReadVarint32(&bytes)) return false;
    if (field == nullptr || field->message_type() == nullptr) {
      if (field != nullptr && field->is_repeated()) CountList(*field, bytes);
      return in.Skip(static_cast<int>(bytes));
    }
    ++parts_;
    if (field->message_type() == dataset::wire::Operation::descriptor()) ++operations_;
    const CodedInputStream::Limit outer = in.PushLimit(static_cast<int>(bytes));
    const bool read = Message(in, *field->message_type(), depth + 1);
    in.PopLimit(outer);
    return read;
  }

  void CountList(const FieldDescriptor& field, uint32_t bytes) {
    if (field.type() == FieldDescriptor::TYPE_BYTES) {
      ++strings_;
    } else {
      const bool wide = field.type() == FieldDescriptor::TYPE_DOUBLE;
      numbers_ += wide ? bytes / sizeof(double) : bytes;  // others take a byte or more
    }
  }

  int64_t operations_ = 0;
  int64_t parts_ = 0;
  int64_t strings_ = 0;
  int64_t numbers_ = 0;
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
