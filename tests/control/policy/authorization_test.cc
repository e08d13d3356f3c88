// SPDX-License-Identifier: Apache-2.0
// The table of rights, cell by cell.
#include "control/policy/authorization.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock::control {
namespace {

using ::testing::HasSubstr;

const Caller kNobody;  // of a dispatcher without an auth_file
const Caller kOwner = Principal{.name = "a", .role = Role::kTrainer};
const Caller kOther = Principal{.name = "b", .role = Role::kTrainer};
const Caller kWorker = Principal{.name = "w", .role = Role::kWorker};
const Caller kOperator = Principal{.name = "o", .role = Role::kOperator};

// Who may act on a job or dataset of "a".
struct Row {
  Action action;
  bool owner, other, worker, by_operator;
};
constexpr std::array<Row, kActions> kTable = {{
    {Action::kGetVersion, true, true, true, true},
    {Action::kRegisterDataset, true, false, false, true},
    {Action::kGetDataset, true, false, true, true},
    {Action::kUnregisterDataset, true, false, false, true},
    {Action::kCreateJob, true, false, false, true},
    {Action::kRestoreJob, true, false, false, true},
    {Action::kGetReading, true, false, false, true},
    {Action::kCancelJob, true, false, false, true},
    {Action::kRemoveJob, true, false, false, true},
    {Action::kGetStatus, true, false, false, true},
    {Action::kReadJob, true, false, false, true},
    {Action::kServe, false, false, true, false},
    {Action::kFinaliseUpgrade, false, false, false, true},
}};

JobRecord JobOf(std::string owner, std::string name = "train") {
  return {.name = std::move(name), .owner = std::move(owner)};
}
DatasetRecord DatasetOf(std::string owner, std::string id = "images") {
  return {.id = std::move(id), .owner = std::move(owner)};
}

TEST(Authorize, ByRoleAndOwner) {
  for (size_t a = 0; a < kTable.size(); ++a) {
    const Row& row = kTable[a];
    ASSERT_EQ(static_cast<size_t>(row.action), a);
    SCOPED_TRACE(a);
    for (const auto& [caller, may] :
         {std::pair(kOwner, row.owner), std::pair(kOther, row.other),
          std::pair(kWorker, row.worker), std::pair(kOperator, row.by_operator),
          std::pair(kNobody, true)}) {
      const bool by_role = may || (caller == kOther && row.owner);
      EXPECT_EQ(Authorize(row.action, caller, "").ok(), by_role);
      EXPECT_EQ(Authorize(row.action, caller, JobOf("")).ok(), by_role);
      EXPECT_EQ(Authorize(row.action, caller, DatasetOf("")).ok(), by_role);
      if (row.action == Action::kGetVersion) continue;  // it is about no object
      EXPECT_EQ(Authorize(row.action, caller, JobOf("a")).ok(), may);
      EXPECT_EQ(Authorize(row.action, caller, DatasetOf("a")).ok(), may);
    }
  }
}

TEST(Authorize, OnlyInItsNamespaces) {
  Caller inside = kOwner;
  inside->namespaces = {"vision", "speech"};
  Caller of_default = kOperator;
  of_default->namespaces = {"default"};
  for (const Row& row : kTable) {
    SCOPED_TRACE(static_cast<int>(row.action));
    if (row.action == Action::kServe || row.action == Action::kFinaliseUpgrade) continue;
    const bool everywhere = row.action == Action::kGetVersion;
    EXPECT_TRUE(Authorize(row.action, inside, "vision").ok());
    EXPECT_TRUE(Authorize(row.action, inside, JobOf("a", "speech/train")).ok());
    EXPECT_TRUE(Authorize(row.action, inside, DatasetOf("a", "vision/images")).ok());
    EXPECT_EQ(Authorize(row.action, inside, "").ok(), everywhere);
    EXPECT_EQ(Authorize(row.action, inside, "audio").ok(), everywhere);
    EXPECT_EQ(Authorize(row.action, inside, JobOf("a")).ok(), everywhere);
    EXPECT_EQ(Authorize(row.action, inside, DatasetOf("a", "audio/x")).ok(), everywhere);
    EXPECT_TRUE(Authorize(row.action, of_default, "").ok());
    EXPECT_TRUE(Authorize(row.action, of_default, JobOf("a")).ok());
    EXPECT_EQ(Authorize(row.action, of_default, JobOf("a", "vision/train")).ok(), everywhere);
  }
}

TEST(Authorize, OnlyAnOperatorOfAllNamespacesMayActOnTheService) {
  Caller of_default = kOperator;
  of_default->namespaces = {"default"};
  EXPECT_TRUE(AuthorizeForAll(Action::kFinaliseUpgrade, kOperator).ok());
  EXPECT_TRUE(AuthorizeForAll(Action::kFinaliseUpgrade, kNobody).ok());
  EXPECT_EQ(AuthorizeForAll(Action::kFinaliseUpgrade, kOwner).message(),
            "principal a with the role trainer may not finalise an upgrade: this needs the role "
            "operator");
  EXPECT_EQ(AuthorizeForAll(Action::kFinaliseUpgrade, kWorker).code(),
            absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(AuthorizeForAll(Action::kFinaliseUpgrade, of_default).message(),
            "principal o with the role operator may not finalise an upgrade: this needs all "
            "namespaces, but the auth_file gives it only default");
}

TEST(Authorize, SaysWhoMay) {
  const absl::Status by_role = Authorize(Action::kServe, kOwner, "");
  EXPECT_EQ(by_role.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(by_role.message(),
            "principal a with the role trainer may not serve as a worker: this needs the role "
            "worker");
  EXPECT_EQ(Authorize(Action::kCancelJob, kOther, JobOf("a")).message(),
            "principal b with the role trainer may not cancel a job: job train belongs to a; only "
            "a and operators may do this");
  EXPECT_THAT(std::string(Authorize(Action::kCancelJob, kWorker, "").message()),
              HasSubstr("needs the role trainer or operator"));
  Caller inside = kOwner;
  inside->namespaces = {"vision"};
  EXPECT_THAT(std::string(Authorize(Action::kCreateJob, inside, "").message()),
              HasSubstr("namespace default is not one of its namespaces (vision)"));
}

}  // namespace
}  // namespace penstock::control
