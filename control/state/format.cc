// SPDX-License-Identifier: Apache-2.0
#include "control/state/format.h"

#include <variant>

namespace penstock::control {
namespace {

// A kind of change without an overload of its own is in the first format. The two numbers below
// make sure that a new kind is not forgotten here.
static_assert(std::variant_size_v<Change> == 18, "give the new kind of change a format");
static_assert(std::variant_size_v<protocol::IterationChange> == 18,
              "give the new kind of change a format");

struct Introduced {
  template <class Kind>
  uint32_t operator()(const Kind&) const {
    return kFirstFormat;
  }
  uint32_t operator()(const protocol::PartitionAssigned& c) const {
    return c.audience.has_value() ? kAudiencesFormat : kFirstFormat;
  }
  uint32_t operator()(const protocol::AudienceExtended&) const { return kAudiencesFormat; }
  uint32_t operator()(const BookmarkMarked& c) const {
    return c.bookmark.versions.empty() ? kFirstFormat : kBookmarkVersionsFormat;
  }
  uint32_t operator()(const JobCreated& c) const {
    return c.job.terms.share == JobShare() ? kFirstFormat : kSharesFormat;
  }
  uint32_t operator()(const IterationAltered& c) const { return std::visit(*this, c.change); }
  // It is what makes the format valid, so it may always be written.
  uint32_t operator()(const FormatFinalised&) const { return kFirstFormat; }
};

}  // namespace

uint32_t FormatOf(const Change& change) {
  return std::visit(Introduced(), change);
}

}  // namespace penstock::control
