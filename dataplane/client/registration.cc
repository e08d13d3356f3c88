// SPDX-License-Identifier: Apache-2.0
#include "dataplane/client/registration.h"

#include <memory>
#include <string>
#include <utility>

#include "control/env/files_until.h"
#include "control/protocol/scoped_name.h"
#include "control/stub/dispatcher_stub.h"
#include "control/sync/random.h"
#include "dataplane/client/client_settings.h"
#include "dataplane/client/distribute.h"
#include "dataplane/client/distribute_options.h"
#include "dataplane/client/session_state/delivery_fields.h"
#include "dataplane/dataset/engine/static_shard.h"
#include "dataplane/dataset/graph/definition.h"
#include "dataplane/dataset/graph/split.h"
#include "include/status_macros.h"
#include "penstock/distribute.h"

namespace penstock {
namespace client {

control::RequestId NewRequest() {
  return {Incarnation(RandomId()), 1};
}

absl::StatusOr<std::unique_ptr<control::DispatcherStub>> StubOf(std::string_view service) {
  ASSIGN_OR_RETURN(const ClientSettings settings, ReadClientSettings(ProcessEnvironment()));
  return control::DispatcherStub::Make(service, settings.tls);
}

absl::StatusOr<control::RegisterDatasetRequest> RegistrationOf(const Dataset& dataset,
                                                               const std::string& name_space,
                                                               std::stop_token stop) {
  control::RegisterDatasetRequest request;
  request.name_space = name_space;
  request.request = NewRequest();
  ASSIGN_OR_RETURN(request.definition, Serialize(dataset));
  control::DatasetSummary& summary = request.summary;
  summary.fingerprint = dataset.fingerprint();
  summary.spec_fingerprint = dataset.element_spec().fingerprint();
  summary.spec_text = dataset.element_spec().ToString();
  summary.cardinality = dataset.cardinality();
  summary.ends = SurelyEnds(dataset);
  for (NodeSummary& node : Summarize(dataset)) {
    summary.nodes.push_back({std::move(node.name), node.fingerprint});
  }
  FilesUntil files(DefaultFiles(), std::move(stop));
  ASSIGN_OR_RETURN(SplitPlan plan, PlanSplits(dataset, files));
  const std::vector<bool> by_file = SplitsAreFiles(dataset, plan);
  for (SplitProviderPlan& provider : plan.providers) {
    const size_t number = summary.plan.size();
    control::SplitProvider& split_provider = summary.plan.emplace_back();
    split_provider.node = std::move(provider.node);
    split_provider.count = provider.count;
    split_provider.shuffled = provider.shuffled;
    if (provider.seeded) split_provider.seed = provider.seed;
    split_provider.files = std::move(provider.files);
    split_provider.by_file = by_file[number];
  }
  return request;
}

}  // namespace client

absl::StatusOr<std::string> RegisterDataset(std::string_view service, const Dataset& dataset,
                                            RegisterOptions options) {
  ASSIGN_OR_RETURN(std::unique_ptr<control::DispatcherStub> stub, client::StubOf(service));
  ASSIGN_OR_RETURN(
      control::RegisterDatasetRequest request,
      client::RegistrationOf(dataset, std::string(control::NamespaceOf(options.dataset_id))));
  request.dataset_id = options.dataset_id;
  request.replace = options.replace;
  ASSIGN_OR_RETURN(control::RegisterDatasetAnswer answer,
                   stub->GetOrRegisterDataset(request, {.timeout = options.timeout}));
  return answer.dataset_id;
}

absl::StatusOr<Dataset> FromDatasetId(std::string_view dataset_id, DistributeOptions options,
                                      std::optional<Spec> element_spec) {
  ASSIGN_OR_RETURN(options.delivery, client::ToDelivery(client::FieldsOf(options)));
  RETURN_IF_ERROR(client::Check(options));
  ASSIGN_OR_RETURN(std::unique_ptr<control::DispatcherStub> stub, client::StubOf(options.service));
  std::string scoped(dataset_id);
  if (dataset_id.find('/') == std::string_view::npos) {
    scoped = control::ScopedName(options.name_space, dataset_id);
  } else if (options.name_space.empty()) {  // the id alone names the dataset
    options.name_space = std::string(control::NamespaceOf(dataset_id));
  }
  ASSIGN_OR_RETURN(control::GetDatasetAnswer found,
                   stub->GetDataset(scoped, /*edition=*/0, {.timeout = options.timeout}));
  absl::StatusOr<Dataset> registered = ParseDataset(found.definition);
  if (!registered.ok() && !element_spec.has_value()) return registered.status();
  Spec spec = element_spec.has_value() ? *element_spec : registered->element_spec();
  if (registered.ok()) {
    RETURN_IF_ERROR(Annotate(spec.Admits(registered->element_spec()), "dataset '", found.dataset_id,
                             "' is registered with a different element_spec"));
  }
  return client::DistributeFromId(found.dataset_id, spec, found.summary.cardinality, options);
}

}  // namespace penstock
