// SPDX-License-Identifier: Apache-2.0
#include "penstock/fingerprint.h"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Fingerprint, IsFnv1aAsPublished) {
  EXPECT_EQ(Fingerprint(""), 0xcbf29ce484222325u);
  EXPECT_EQ(Fingerprint("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(Fingerprint("foobar"), 0x85944171f73967e8u);
}

TEST(Fingerprint, OfPiecesEqualsThatOfTheWhole) {
  EXPECT_EQ(Fingerprint("bar", Fingerprint("foo")), Fingerprint("foobar"));
}

TEST(Fingerprint, OfANumberIsThatOfItsBytesLowestFirst) {
  EXPECT_EQ(Fingerprint(uint64_t{0x0807060504030201}),
            Fingerprint(absl::string_view("\x01\x02\x03\x04\x05\x06\x07\x08", 8)));
}

}  // namespace
}  // namespace penstock
