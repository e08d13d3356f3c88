// SPDX-License-Identifier: Apache-2.0
#include "dataplane/element/error_block.h"

#include <gtest/gtest.h>

#include <cstring>

#include "dataplane/element/block.h"
#include "dataplane/element/extension.h"
#include "dataplane/memory/pool.h"
#include "tests/dataplane/element/sample.h"

namespace penstock {
namespace {

const Identity kIdentity = {.partition = PartitionId(3), .index = 17};

TEST(ErrorBlock, CarriesCodeMessageAndIdentity) {
  const absl::Status error = absl::DataLossError("checksum of a.tfrecord at 120");
  const Element element = MakeErrorBlock(DefaultPool(), kIdentity, error).value();
  EXPECT_TRUE(IsError(element));
  EXPECT_EQ(ReadErrorBlock(element), error);
  EXPECT_EQ(element.identity().partition, PartitionId(3));
  EXPECT_EQ(element.identity().index, 17);
}

TEST(ErrorBlock, FitsAnySpec) {
  const Element element = MakeErrorBlock(DefaultPool(), kIdentity, absl::NotFoundError("")).value();
  EXPECT_EQ(CheckBlock(element.block(), SampleSpec()).value(), element.block().size());
  EXPECT_EQ(ReadErrorBlock(element), absl::NotFoundError(""));
}

TEST(ErrorBlock, CutsAMessageThatIsTooLong) {
  const absl::Status error = absl::InternalError(std::string(1 << 20, 'x'));
  const Element element = MakeErrorBlock(DefaultPool(), kIdentity, error).value();
  EXPECT_EQ(ReadErrorBlock(element).message().size(), kMaxErrorMessageBytes);
  EXPECT_LE(ErrorBlockBytes(error), kMaxErrorBlockBytes);
}

TEST(ErrorBlock, OfALaterReleasesCodeIsUnknown) {
  const Element element = MakeErrorBlock(DefaultPool(), kIdentity, absl::AbortedError("m")).value();
  const auto payload = FindExtension(element.block().data(), ExtensionType::kStatus);
  for (const int32_t code : {0, 17, -1}) {
    std::memcpy(const_cast<std::byte*>(payload->data()), &code, sizeof(code));
    EXPECT_EQ(ReadErrorBlock(element), absl::UnknownError("m")) << code;
  }
}

TEST(ErrorBlock, WithoutItsStatusIsDataLoss) {
  Loan loan = DefaultPool().Lend(128).value();
  BlockWriter writer(BlockLayout::Of({}).value(), loan.bytes(), Spec());
  MutablePrefixOf(writer.block()).flags = kFlagError;
  const Element element(std::move(loan), writer.block(), Spec());
  EXPECT_EQ(ReadErrorBlock(element).code(), absl::StatusCode::kDataLoss);
}

TEST(ErrorBlock, IsNotAnElement) {
  EXPECT_FALSE(IsError(SampleElement()));
  EXPECT_FALSE(IsError(Element()));
}

}  // namespace
}  // namespace penstock
