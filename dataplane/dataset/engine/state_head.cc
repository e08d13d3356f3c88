// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/engine/state_head.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "dataplane/dataset/engine/epochs.h"
#include "include/status_macros.h"

namespace penstock {
namespace {

constexpr std::string_view kStateMagic = "PSIT";
constexpr uint64_t kStateVersion = 3;

}  // namespace

std::string EncodeStateHead(const StateHead& head) {
  StateWriter writer;
  writer.WriteUnsigned(kStateVersion);
  writer.WriteUnsigned(head.origin);
  writer.WriteUnsigned(head.save);
  writer.WriteUnsigned(head.seed);
  writer.WriteInt(head.epoch);
  writer.WriteInt(head.step);
  return absl::StrCat(std::string(kStateMagic), writer.bytes());
}

std::string_view AfterMagic(const State& state) {
  const std::string_view bytes = state.bytes;
  return bytes.substr(std::min(bytes.size(), kStateMagic.size()));
}

absl::StatusOr<StateHead> ReadStateHead(StateReader& reader, const State& state) {
  if (!std::string_view(state.bytes).starts_with(kStateMagic))
    return absl::InvalidArgumentError("the bytes are not an iterator state");
  ASSIGN_OR_RETURN(const uint64_t version, reader.ReadUnsigned());
  if (version != kStateVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("the state has version ", version, "; this program reads ", kStateVersion));
  }
  StateHead head;
  ASSIGN_OR_RETURN(head.origin, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(head.save, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(head.seed, reader.ReadUnsigned());
  ASSIGN_OR_RETURN(head.epoch, reader.ReadIntIn(0, kMostEpochs, "the epoch"));
  ASSIGN_OR_RETURN(head.step, reader.ReadInt());
  return head;
}

}  // namespace penstock
