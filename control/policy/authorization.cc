// SPDX-License-Identifier: Apache-2.0
#include "control/policy/authorization.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/protocol/scoped_name.h"
#include "include/status_macros.h"

namespace penstock::control {
namespace {

struct Rule {
  const char* what;  // follows "may not"
  bool trainer;
  bool worker;
  bool by_operator;
  bool in_namespace = true;  // whether the action is on an object of a namespace
};

// By Action.
constexpr std::array<Rule, kActions> kRules = {{
    {"ask for the version", true, true, true, false},
    {"register a dataset", true, false, true},
    {"fetch a dataset", true, true, true},
    {"unregister a dataset", true, false, true},
    {"create a job", true, false, true},
    {"restore a job", true, false, true},
    {"save the position of a job", true, false, true},
    {"cancel a job", true, false, true},
    {"remove a job", true, false, true},
    {"see the status", true, false, true},
    {"read a job", true, false, true},
    {"serve as a worker", false, true, false, false},
    {"finalise an upgrade", false, false, true},
}};

bool Allows(const Rule& rule, Role role) {
  return role == Role::kTrainer  ? rule.trainer
         : role == Role::kWorker ? rule.worker
                                 : rule.by_operator;
}

absl::Status Denied(const Rule& rule, const Principal& caller, const std::string& why) {
  return absl::PermissionDeniedError(absl::StrCat("principal ", caller.name, " with the role ",
                                                  std::string(ToText(caller.role)), " may not ",
                                                  rule.what, ": ", why));
}

absl::Status CheckOwner(Action action, const Caller& caller, const std::string& owner,
                        const std::string& what) {
  if (!caller.has_value() || caller->role != Role::kTrainer) return absl::OkStatus();
  if (owner.empty() || owner == caller->name) return absl::OkStatus();
  return Denied(
      kRules[static_cast<size_t>(action)], *caller,
      absl::StrCat(what, " belongs to ", owner, "; only ", owner, " and operators may do this"));
}

}  // namespace

absl::Status AuthorizeByRole(Action action, const Caller& caller) {
  const Rule& rule = kRules[static_cast<size_t>(action)];
  if (!caller.has_value() || Allows(rule, caller->role)) return absl::OkStatus();
  std::vector<std::string> roles;
  for (const Role role : {Role::kTrainer, Role::kWorker, Role::kOperator}) {
    if (Allows(rule, role)) roles.emplace_back(ToText(role));
  }
  return Denied(rule, *caller, absl::StrCat("this needs the role ", absl::StrJoin(roles, " or ")));
}

absl::Status Authorize(Action action, const Caller& caller, std::string_view name_space) {
  RETURN_IF_ERROR(AuthorizeByRole(action, caller));
  if (!caller.has_value()) return absl::OkStatus();
  const Rule& rule = kRules[static_cast<size_t>(action)];
  const std::vector<std::string>& allowed = caller->namespaces;
  // No namespace of the auth_file is longer, and the text of the error must stay short.
  const std::string its(name_space.empty() ? kDefaultNamespace
                                           : name_space.substr(0, kMaxNamespaceBytes + 1));
  if (!rule.in_namespace || allowed.empty() ||
      std::find(allowed.begin(), allowed.end(), its) != allowed.end()) {
    return absl::OkStatus();
  }
  return Denied(rule, *caller,
                absl::StrCat("namespace ", its, " is not one of its namespaces (",
                             absl::StrJoin(allowed, ", "), ") in the auth_file"));
}

absl::Status AuthorizeForAll(Action action, const Caller& caller) {
  RETURN_IF_ERROR(AuthorizeByRole(action, caller));
  if (!caller.has_value() || caller->namespaces.empty()) return absl::OkStatus();
  return Denied(kRules[static_cast<size_t>(action)], *caller,
                absl::StrCat("this needs all namespaces, but the auth_file gives it only ",
                             absl::StrJoin(caller->namespaces, ", ")));
}

absl::Status Authorize(Action action, const Caller& caller, const JobRecord& job) {
  RETURN_IF_ERROR(Authorize(action, caller, NamespaceOf(job.name)));
  return CheckOwner(action, caller, job.owner, absl::StrCat("job ", job.name));
}

absl::Status Authorize(Action action, const Caller& caller, const DatasetRecord& dataset) {
  RETURN_IF_ERROR(Authorize(action, caller, NamespaceOf(dataset.id)));
  return CheckOwner(action, caller, dataset.owner, absl::StrCat("dataset ", dataset.id));
}

}  // namespace penstock::control
