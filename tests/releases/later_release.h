// SPDX-License-Identifier: Apache-2.0
// Messages and changes of a later release: kinds and fields that this release does not know.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "control/observe/metrics.h"
#include "google/protobuf/message.h"

namespace penstock::control::later {

// No message of this release has this field.
inline constexpr int kField = 1000;

// Returns the bytes of any message with that field: on a stream, a kind of message that this
// release does not know; in a journal, a kind of change.
inline std::string Unknown() {
  return "\xc2\x3e\x01x";
}

// Adds the field to the message and to each message in it.
inline void AddFields(google::protobuf::Message& message) {
  const google::protobuf::Reflection& its = *message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  its.ListFields(message, &fields);
  for (const auto* field : fields) {
    if (field->message_type() == nullptr) continue;
    if (!field->is_repeated()) {
      AddFields(*its.MutableMessage(&message, field));
      continue;
    }
    for (int i = 0; i < its.FieldSize(message, field); ++i)
      AddFields(*its.MutableRepeatedMessage(&message, field, i));
  }
  its.MutableUnknownFields(&message)->AddVarint(kField, 7);
}

// Returns how many messages of the stream this process has ignored, according to the metric.
inline int64_t IgnoredOn(const std::string& stream) {
  const std::string text = ProcessMetrics().Render();
  const std::string name =
      absl::StrCat("penstock_ignored_messages_total{stream=\"", stream, "\"} ");
  const size_t found = text.find(name);
  return found == std::string::npos ? 0 : std::atoll(text.c_str() + found + name.size());
}

}  // namespace penstock::control::later
