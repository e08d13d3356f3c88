// SPDX-License-Identifier: Apache-2.0
#include "dataplane/element/error_block.h"

#include <algorithm>
#include <cstring>

#include "dataplane/element/block.h"
#include "dataplane/element/extension.h"
#include "penstock/check.h"

namespace penstock {
namespace {

// The status extension: a canonical code (int32), then the message.
constexpr size_t kCodeBytes = sizeof(int32_t);

absl::string_view MessageOf(const absl::Status& error) {
  return error.message().substr(0, kMaxErrorMessageBytes);
}

BlockLayout LayoutFor(const absl::Status& error) {
  absl::StatusOr<BlockLayout> layout =
      BlockLayout::Of({}, ExtensionBytes(kCodeBytes + MessageOf(error).size()));
  PENSTOCK_CHECK(layout.ok());
  return *std::move(layout);
}

}  // namespace

size_t ErrorBlockBytes(const absl::Status& error) {
  return LayoutFor(error).bytes();
}

void WriteErrorBlock(absl::Span<std::byte> memory, const Identity& identity,
                     const absl::Status& error) {
  PENSTOCK_CHECK(!error.ok());
  BlockWriter writer(LayoutFor(error), memory, Spec());
  MutablePrefixOf(writer.block()).flags = kFlagError;
  SetIdentity(writer.block(), identity);
  const absl::string_view message = MessageOf(error);
  const absl::Span<std::byte> payload =
      ExtensionWriter(writer.extensions()).Add(ExtensionType::kStatus, kCodeBytes + message.size());
  const int32_t code = error.raw_code();
  std::memcpy(payload.data(), &code, kCodeBytes);
  if (!message.empty()) std::memcpy(payload.data() + kCodeBytes, message.data(), message.size());
}

bool IsError(const Element& element) {
  return element && (PrefixOf(element.block().data()).flags & kFlagError) != 0;
}

absl::Status ReadErrorBlock(const Element& element) {
  PENSTOCK_CHECK(IsError(element));
  const std::optional<absl::Span<const std::byte>> payload =
      FindExtension(element.block().data(), ExtensionType::kStatus);
  if (!payload || payload->size() < kCodeBytes)
    return absl::DataLossError("an element's ERROR block has no status");
  int32_t code;
  std::memcpy(&code, payload->data(), kCodeBytes);
  const absl::string_view message(reinterpret_cast<const char*>(payload->data()) + kCodeBytes,
                                  payload->size() - kCodeBytes);
  if (code <= 0 || code > static_cast<int32_t>(absl::StatusCode::kUnauthenticated))
    return absl::UnknownError(message);  // not a canonical code: written by a later release
  return absl::Status(static_cast<absl::StatusCode>(code), message);
}

}  // namespace penstock
