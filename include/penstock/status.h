// SPDX-License-Identifier: Apache-2.0
// Functions that may fail return absl::Status or absl::StatusOr. An error's message describes the
// fault, its place and a remedy. Each caller may add its own place with Annotate().
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"

#pragma GCC visibility push(default)
namespace penstock {

// Returns `status` with "; " and the given pieces (any that absl::StrCat takes) appended to its
// message. Code and payloads stay the same. OK stays OK.
template <class... Pieces>
absl::Status Annotate(const absl::Status& status, const Pieces&... pieces) {
  if (status.ok()) return status;
  absl::Status annotated(status.code(), absl::StrCat(status.message(), "; ", pieces...));
  status.ForEachPayload([&](absl::string_view type, const absl::Cord& payload) {
    annotated.SetPayload(type, payload);
  });
  return annotated;
}

}  // namespace penstock
#pragma GCC visibility pop

#define PENSTOCK_CONCAT_INNER(a, b) a##b
#define PENSTOCK_CONCAT(a, b) PENSTOCK_CONCAT_INNER(a, b)

// Returns the status of `expression` from the current function, unless the status is OK.
#define PENSTOCK_RETURN_IF_ERROR(expression)                                  \
  do {                                                                        \
    if (::absl::Status penstock_status = (expression); !penstock_status.ok()) \
      return penstock_status;                                                 \
  } while (false)

// Assigns the value of the absl::StatusOr `expression` to `declaration`, or returns its status:
//   PENSTOCK_ASSIGN_OR_RETURN(Iterator it, dataset.MakeIterator());
#define PENSTOCK_ASSIGN_OR_RETURN(declaration, expression) \
  PENSTOCK_ASSIGN_OR_RETURN_INNER(PENSTOCK_CONCAT(penstock_or_, __LINE__), declaration, expression)
#define PENSTOCK_ASSIGN_OR_RETURN_INNER(holder, declaration, expression) \
  auto holder = (expression);                                            \
  if (!holder.ok()) return std::move(holder).status();                   \
  declaration = *std::move(holder)
