// SPDX-License-Identifier: Apache-2.0
// Versions of the messages on a link. Each side reads a range of versions. Both sides use the lower
// of the two highest versions: the worker knows the client's range from the hello, and the client
// knows the worker's range from the compatibility of its offer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::transfer {

// All versions in [lowest, highest]. Both are from 1 to 65,535.
struct LinkVersions {
  uint32_t lowest = 1;
  uint32_t highest = 1;
  friend bool operator==(const LinkVersions&, const LinkVersions&) = default;
};

// The form in a worker's offer: "v1" or, for several versions, "v1-3".
std::string ToString(const LinkVersions& versions);
// Reads that form. InvalidArgument for any other text.
absl::StatusOr<LinkVersions> ParseLinkVersions(std::string_view text);

// The form in a hello: the lowest version in the lower 16 bits, and above it the number of further
// versions. So a range of one version is that version, as releases before 0.10 write it.
uint32_t Pack(const LinkVersions& versions);
LinkVersions UnpackLinkVersions(uint32_t packed);

// Returns the version that both sides use. FailedPrecondition, with both ranges, if they have no
// version in common.
absl::StatusOr<uint32_t> Agree(const LinkVersions& worker, const LinkVersions& client);

// Checks the version in the offer of a worker, "v1-3". NotFound, with both, if the worker and this
// client have no version in common, or if the text is none.
absl::Status CheckOffer(std::string_view offered, const LinkVersions& ours);

}  // namespace penstock::transfer
