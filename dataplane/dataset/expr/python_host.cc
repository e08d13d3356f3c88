// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dataset/expr/python_host.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "control/sync/mutex.h"
#include "dataplane/memory/fork_guard.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace penstock {
namespace {

class RefusingHost final : public PythonHost {
 public:
  explicit RefusingHost(std::string reason) : reason_(std::move(reason)) {}

  absl::Status Admit(const PythonFunction&) const override {
    return absl::PermissionDeniedError(reason_);
  }
  absl::Status Call(const std::shared_ptr<const PythonFunction>& function, absl::Span<const Tensor>,
                    absl::Span<const TensorSpec>, ElementOutputs&) override {
    return Admit(*function);
  }
  absl::StatusOr<std::unique_ptr<SourceReader>> Open(std::shared_ptr<const PythonFunction> function,
                                                     Spec) override {
    return Admit(*function);
  }
  int CallsAtOnce() const override { return 1; }
  void Stop() override {}

 private:
  const std::string reason_;
};

uint64_t FunctionKey(const PythonFunction& function) {
  std::string all;
  for (const std::string* part : {&function.name, &function.pickle, &function.call})
    absl::StrAppend(&all, part->size(), ":", *part);
  return XXH3_64bits(all.data(), all.size());
}

struct OfThisProcess {
  Mutex mu;
  std::shared_ptr<PythonHost> host GUARDED_BY(mu);
  ForkGuard in_creator GUARDED_BY(mu);
};

OfThisProcess& Here() {
  static auto* const here = new OfThisProcess;
  return *here;
}

}  // namespace

void AddTo(Attrs& attrs, PythonFunction function) {
  attrs["name"] = std::move(function.name);
  attrs["pickle"] = std::move(function.pickle);
  attrs["version"] = std::move(function.version);
  attrs["call"] = std::move(function.call);
}

PythonFunction PythonFunctionOf(const Attrs& attrs) {
  PythonFunction function{.name = Get<std::string>(attrs, "name"),
                          .pickle = Get<std::string>(attrs, "pickle"),
                          .version = Get<std::string>(attrs, "version"),
                          .call = Get<std::string>(attrs, "call")};
  function.key = FunctionKey(function);
  return function;
}

std::string WayOf(const PythonFunction& function) {
  std::string way = absl::StrCat("Python '", function.name, "' by ");
  if (function.pickle.empty()) {
    absl::StrAppend(&way, "import path");
  } else {
    absl::StrAppend(&way, "cloudpickle, ", function.pickle.size(), " bytes");
  }
  if (!function.version.empty()) absl::StrAppend(&way, ", version ", function.version);
  return way;
}

std::shared_ptr<PythonHost> PythonHost::Refusing(std::string reason) {
  return std::make_shared<RefusingHost>(std::move(reason));
}

std::shared_ptr<PythonHost> PythonHost::OfProcess() {
  OfThisProcess& here = Here();
  MutexLock lock(here.mu);
  if (here.host != nullptr && here.in_creator) return here.host;
  return Refusing(
      "this process cannot run Python functions: read the dataset from Python, or "
      "distribute it to workers that were started with --python N");
}

void PythonHost::SetOfProcess(std::shared_ptr<PythonHost> host) {
  OfThisProcess& here = Here();
  MutexLock lock(here.mu);
  // After a fork, the parent stops the host that it made; the child leaks its copy.
  if (!here.in_creator) new std::shared_ptr<PythonHost>(std::move(here.host));
  here.host = std::move(host);
  here.in_creator = ForkGuard();
}

}  // namespace penstock
