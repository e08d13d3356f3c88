// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>

#include "include/status_macros.h"

namespace penstock {
namespace {

TEST(Annotate, AddsWhereItWasAndKeepsCodeAndPayloads) {
  absl::Status read = absl::DataLossError("checksum differs");
  read.SetPayload("type", absl::Cord("payload"));
  const absl::Status status = Annotate(read, "record ", 7, " of ", "a.tfrecord");
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(status.message(), "checksum differs; record 7 of a.tfrecord");
  EXPECT_EQ(status.GetPayload("type"), absl::Cord("payload"));
}

TEST(Annotate, LeavesOkAlone) {
  EXPECT_TRUE(Annotate(absl::OkStatus(), "x").ok());
}

absl::StatusOr<std::unique_ptr<int>> Half(int number) {
  if (number % 2 != 0) return absl::InvalidArgumentError("odd");
  return std::make_unique<int>(number / 2);
}

absl::StatusOr<int> Quarter(int number) {
  ASSIGN_OR_RETURN(std::unique_ptr<int> half, Half(number));
  ASSIGN_OR_RETURN(half, Half(*half));
  return *half;
}

absl::Status Even(int number) {
  RETURN_IF_ERROR(Half(number).status());
  return absl::OkStatus();
}

TEST(StatusMacros, GoOnWithTheValue) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_TRUE(Even(2).ok());
}

TEST(StatusMacros, ReturnTheFirstError) {
  EXPECT_EQ(Quarter(6).status(), absl::InvalidArgumentError("odd"));
  EXPECT_EQ(Even(3), absl::InvalidArgumentError("odd"));
}

}  // namespace
}  // namespace penstock
