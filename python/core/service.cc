// SPDX-License-Identifier: Apache-2.0
#include "python/core/service.h"

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "control/settings/server_settings.h"
#include "dataplane/client/session_state/delivery_fields.h"
#include "dataplane/memory/catch_exhausted.h"
#include "dataplane/memory/fork_guard.h"
#include "penstock/dataset.h"
#include "penstock/server.h"
#include "penstock/sharding.h"
#include "python/core/casters.h"
#include "python/core/errors.h"
#include "python/core/signals.h"
#include "python/core/without_gil.h"

namespace penstock::python {

namespace py = pybind11;

namespace {

// --- Keyword arguments into fields of a struct ------------------------------------

template <class T>
T Convert(py::handle value) {
  return py::cast<T>(value);
}
template <>
absl::Duration Convert(py::handle value) {
  return absl::Seconds(value.cast<double>());
}

template <class S>
using Fields = std::map<std::string, std::function<void(S&, py::handle)>>;

template <class S, class T>
std::function<void(S&, py::handle)> Field(T S::*field) {
  return [field](S& options, py::handle value) { options.*field = Convert<T>(value); };
}
template <class S>
std::function<void(S&, py::handle)> Milliseconds(absl::Duration S::*field) {
  return [field](S& options, py::handle value) {
    options.*field = absl::Milliseconds(py::cast<int64_t>(value));
  };
}

template <class S>
S From(const py::dict& arguments, const Fields<S>& fields, const char* what) {
  S options;
  for (const auto& [key, value] : arguments) {
    const auto name = py::cast<std::string>(key);
    const auto field = fields.find(name);
    if (field == fields.end()) {
      throw py::value_error(absl::StrCat(
          what, " has no '", name,
          "'; known names: ", absl::StrJoin(fields, ", ", [](std::string* out, const auto& known) {
            out->append(known.first);
          })));
    }
    try {
      field->second(options, value);
    } catch (const py::cast_error&) {
      throw py::type_error(
          absl::StrCat(what, ": invalid value for ", name, ": ",
                       std::string(py::repr(py::reinterpret_borrow<py::object>(value)))));
    }
  }
  return options;
}

// The keywords of distribute(): the delivery as flat fields, which are combined at the end.
struct DistributeArguments {
  DistributeOptions options;
  client::DeliveryFields delivery;
};

template <class T>
std::function<void(DistributeArguments&, py::handle)> Option(T DistributeOptions::*field) {
  return [set = Field(field)](DistributeArguments& arguments, py::handle value) {
    set(arguments.options, value);
  };
}
template <class T>
std::function<void(DistributeArguments&, py::handle)> Deliver(T client::DeliveryFields::*field) {
  return [set = Field(field)](DistributeArguments& arguments, py::handle value) {
    set(arguments.delivery, value);
  };
}
std::function<void(DistributeArguments&, py::handle)> OfGroup(int64_t ConsumerGroup::*field) {
  return [field](DistributeArguments& arguments, py::handle value) {
    std::optional<ConsumerGroup>& group = arguments.delivery.consumer_group;
    if (!group.has_value()) group.emplace();
    (*group).*field = value.cast<int64_t>();
  };
}

const Fields<DistributeArguments>& DistributeFields() {
  using A = DistributeArguments;
  using O = DistributeOptions;
  using D = client::DeliveryFields;
  static const auto* const fields = new Fields<A>{
      {"processing_mode", Option(&O::processing_mode)},
      {"service", Option(&O::service)},
      {"job_name", Option(&O::job_name)},
      {"run_id", Option(&O::run_id)},
      {"max_outstanding_requests", Option(&O::max_outstanding_requests)},
      {"max_outstanding_bytes", Option(&O::max_outstanding_bytes)},
      {"data_transfer_protocol", Option(&O::data_transfer_protocol)},
      {"fallback", Option(&O::fallback)},
      {"ack_mode", Option(&O::ack_mode)},
      {"order", Deliver(&D::order)},
      {"partitions", Deliver(&D::partitions)},
      {"visitation", Deliver(&D::visitation)},
      {"early_end", Deliver(&D::early_end)},
      {"consumer_index", Deliver(&D::consumer_index)},
      {"num_consumers", Deliver(&D::num_consumers)},
      {"remainder_policy", Deliver(&D::remainder_policy)},
      {"on_error", Deliver(&D::on_error)},
      {"group_size", OfGroup(&ConsumerGroup::size)},
      {"group_member", OfGroup(&ConsumerGroup::member)},
      {"trainer_id",
       [](A& arguments, py::handle value) {
         arguments.delivery.cross_trainer_cache = CrossTrainerCache{value.cast<std::string>()};
       }},
      {"target_workers", Option(&O::target_workers)},
      {"compression", Option(&O::compression)},
      {"max_bytes_in_flight",
       [](A& arguments, py::handle value) {
         arguments.options.quota.max_bytes_in_flight = value.cast<int64_t>();
       }},
      {"max_permits",
       [](A& arguments, py::handle value) {
         arguments.options.quota.max_permits = value.cast<int64_t>();
       }},
      {"weight", [](A& arguments,
                    py::handle value) { arguments.options.share.weight = value.cast<int64_t>(); }},
      {"priority",
       [](A& arguments, py::handle value) {
         arguments.options.share.priority = value.cast<int64_t>();
       }},
      {"namespace", Option(&O::name_space)},
      {"task_refresh_interval_hint_ms",
       [set = Milliseconds(&O::task_refresh_interval_hint)](A& arguments, py::handle value) {
         set(arguments.options, value);
       }},
      {"timeout", Option(&O::timeout)},
      {"seed", Option(&O::seed)},
  };
  return *fields;
}

// --- Configs of servers, from the table of their settings --------------------------

void SetFrom(const Setting& setting, py::handle value) {
  std::visit(
      [&](auto* target) {
        using T = std::remove_pointer_t<decltype(target)>;
        if constexpr (std::is_same_v<T, absl::Duration>) {
          *target = absl::Milliseconds(py::cast<int64_t>(value));
        } else {
          *target = py::cast<T>(value);
        }
      },
      setting.target);
}

// Sets the setting whose key in a settings file is `name`.
void SetByKey(const std::vector<Setting>& settings, const std::string& what,
              const std::string& name, py::handle value) {
  const auto setting = std::find_if(settings.begin(), settings.end(), [&](const Setting& known) {
    return KeyOf(known.name) == name;
  });
  if (setting == settings.end()) {
    throw py::value_error(
        absl::StrCat(what, " has no '", name, "'; there is ",
                     absl::StrJoin(settings, ", ", [](std::string* out, const Setting& known) {
                       out->append(KeyOf(known.name));
                     })));
  }
  if (!setting->may_be_empty && py::isinstance<py::str>(value) && py::len(value) == 0) {
    throw py::value_error(
        absl::StrCat(what, ": ", name, " is empty; give it a value, or leave it out"));
  }
  try {
    SetFrom(*setting, value);
  } catch (const py::cast_error&) {
    throw py::type_error(absl::StrCat(what, ": ", name, " cannot be ",
                                      std::string(py::repr(value.cast<py::object>()))));
  }
}

// Returns the entries of a dict whose keys are strings. `what`: names the config and the field.
std::vector<std::pair<std::string, py::handle>> EntriesOf(const std::string& what,
                                                          py::handle dict) {
  if (!py::isinstance<py::dict>(dict)) {
    throw py::type_error(absl::StrCat(what, " must be a dict, not ",
                                      std::string(py::repr(dict.cast<py::object>()))));
  }
  std::vector<std::pair<std::string, py::handle>> entries;
  for (const auto& [key, value] : dict.cast<py::dict>()) {
    if (!py::isinstance<py::str>(key)) {
      throw py::type_error(absl::StrCat(what, " has the key ",
                                        std::string(py::repr(key.cast<py::object>())),
                                        ", which is not a string"));
    }
    entries.emplace_back(py::cast<std::string>(key), value);
  }
  return entries;
}

// Sets the settings that begin with "tls_" from a dict. A dict that sets nothing is an error, since
// the server would serve in plain text.
void SetTls(const std::vector<Setting>& settings, const std::string& what, py::handle tls) {
  const auto entries = EntriesOf(absl::StrCat(what, ": tls"), tls);
  if (entries.empty()) {
    throw py::value_error(
        absl::StrCat(what, ": tls is empty; give \"certificate\" and \"key\", or leave out tls"));
  }
  for (const auto& [name, value] : entries)
    SetByKey(settings, what, absl::StrCat("tls_", name), value);
}

// Sets the limits of single namespaces from a dict of dicts, as from the tables of a settings file.
void SetNamespaces(DispatcherConfig& config, py::handle namespaces) {
  for (const auto& [name, limits] : EntriesOf("DispatcherConfig: namespaces", namespaces)) {
    const std::string what = absl::StrCat("DispatcherConfig: namespaces[\"", name, "\"]");
    NamespaceLimits& its = config.namespaces[name];
    its = config.namespace_limits;
    for (const auto& [key, value] : EntriesOf(what, limits))
      SetByKey(SettingsOf(its), what, key, value);
  }
}

bool SetOther(DispatcherConfig& config, const std::string& name, py::handle value) {
  if (name == "namespaces") {
    SetNamespaces(config, value);
  } else if (name == "deployment_mode") {
    config.deployment_mode = ValueOrRaise(DeploymentModeFromName(value.cast<std::string>()));
  } else {
    return false;
  }
  return true;
}
bool SetOther(WorkerConfig&, const std::string&, py::handle) {
  return false;
}

// Returns the config with these fields.
template <class Config>
Config ConfigFrom(const py::dict& arguments, const char* what) {
  Config config;
  const std::vector<Setting> settings = SettingsOf(config);
  for (const auto& [key, value] : arguments) {
    const auto name = py::cast<std::string>(key);
    if (name == "tls") {
      SetTls(settings, what, value);
    } else if (!SetOther(config, name, value)) {
      SetByKey(settings, what, name, value);
    }
  }
  return config;
}

// Returns (key, help) of each setting.
template <class Config>
std::vector<std::pair<std::string, std::string>> HelpOf() {
  Config config;
  std::vector<std::pair<std::string, std::string>> help;
  for (const Setting& setting : SettingsOf(config)) {
    help.emplace_back(KeyOf(setting.name), setting.help);
  }
  return help;
}

// --- Servers -----------------------------------------------------------------------

// A server that is stopped and joined without the GIL.
template <class Server, class Config>
class HeldServer {
 public:
  explicit HeldServer(Config config) {
    WithoutGil without_gil;
    absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(std::move(config));
    if (server.ok()) server_ = *std::move(server);
    started_ = server.status();
  }
  ~HeldServer() {
    if (!in_creator_) {
      static_cast<void>(server_.release());  // its threads are the parent's
      return;
    }
    WithoutGil without_gil;
    server_.reset();
  }
  HeldServer(const HeldServer&) = delete;

  const absl::Status& started() const { return started_; }
  Server& operator*() { return *server_; }
  // Does nothing in a forked child, because the server belongs to the parent.
  void Stop() {
    if (!in_creator_) return;
    WithoutGil without_gil;
    server_->Stop();
  }
  // Waits until the server is stopped or ends by itself. Python's signal handlers run meanwhile.
  void Join() {
    StayAwayIfLeaving();
    if (!in_creator_) {
      Raise(absl::FailedPreconditionError(
          "this server belongs to the process that this one was forked from; join it there"));
    }
    std::future<void> joined;
    RaiseIfError(CatchExhausted("join", [&] {
      joined = std::async(std::launch::async, [this] { server_->Join(); });
      return absl::OkStatus();
    }));
    while (true) {
      {
        WithoutGil without_gil;
        if (joined.wait_for(std::chrono::milliseconds(100)) == std::future_status::ready) return;
      }
      try {
        HearSignals();
      } catch (const py::error_already_set&) {
        Stop();  // else the future's destructor would wait for ever
        throw;
      }
    }
  }
  void RaiseWhyItEnded() { RaiseIfError(server_->status()); }

 private:
  std::unique_ptr<Server> server_;
  absl::Status started_;
  const ForkGuard in_creator_;
};

using HeldDispatcher = HeldServer<DispatchServer, DispatcherConfig>;
using HeldWorker = HeldServer<WorkerServer, WorkerConfig>;

template <class Held, class Config>
py::class_<Held> BindServer(py::module_& module, const char* name, const char* what) {
  return py::class_<Held>(module, name)
      .def(py::init([what](const py::dict& config) {
        auto server = std::make_unique<Held>(ConfigFrom<Config>(config, what));
        RaiseIfError(server->started());
        return server;
      }))
      .def("stop", &Held::Stop)
      .def("join",
           [](Held& self) {
             self.Join();
             self.RaiseWhyItEnded();
           })
      .def_property_readonly("port", [](Held& self) { return (*self).port(); })
      .def_property_readonly("metrics_port", [](Held& self) { return (*self).metrics_port(); });
}

void BindEnumerations(py::module_& module) {
  py::enum_<ShardingPolicy>(module, "ShardingPolicy",
                            "How elements are divided among workers: docs/choosing_a_mode.md.")
      .value("OFF", ShardingPolicy::kOff)
      .value("DYNAMIC", ShardingPolicy::kDynamic)
      .value("FILE", ShardingPolicy::kFile)
      .value("DATA", ShardingPolicy::kData)
      .value("FILE_OR_DATA", ShardingPolicy::kFileOrData)
      .value("HINT", ShardingPolicy::kHint);
  py::enum_<AckMode>(module, "AckMode",
                     "The elements that count as read by a trainer: all that were delivered to it, "
                     "or only the elements in a state that it committed.")
      .value("ON_DELIVERY", AckMode::kOnDelivery)
      .value("ON_COMMIT", AckMode::kOnCommit)
      // Names before 0.9, until the next release.
      .value("TAKEN", AckMode::kOnDelivery)
      .value("COMMITTED", AckMode::kOnCommit);
  py::enum_<MergeOrder>(module, "MergeOrder",
                        "The order in which a reader gets the elements of all partitions: as they "
                        "arrive, in turn, or equal in every run.")
      .value("ANY", MergeOrder::kAny)
      .value("FAIR", MergeOrder::kFair)
      .value("DETERMINISTIC", MergeOrder::kDeterministic);
  py::enum_<Visitation>(module, "Visitation",
                        "Whether elements may be delivered again after a failure.")
      .value("EXACTLY_ONCE", Visitation::kExactlyOnce)
      .value("AT_LEAST_ONCE", Visitation::kAtLeastOnce);
  py::enum_<RemainderPolicy>(
      module, "RemainderPolicy",
      "The treatment of elements that do not fill the last round of a coordinated read.")
      .value("PAD", RemainderPolicy::kPad)
      .value("DROP", RemainderPolicy::kDrop)
      .value("ERROR", RemainderPolicy::kError);
  py::enum_<RoundErrorPolicy>(module, "RoundErrorPolicy",
                              "The behaviour of all consumers at a round that contains an error.")
      .value("SKIP_ROUND", RoundErrorPolicy::kSkipRound)
      .value("STOP", RoundErrorPolicy::kStop);
  py::enum_<TargetWorkers>(module, "TargetWorkers");
  py::enum_<LinkCompression>(module, "Compression", "The compression of links to workers.")
      .value("NONE", LinkCompression::kNone)
      .value("AUTO", LinkCompression::kAuto)
      .value("SNAPPY", LinkCompression::kSnappy)
      .value("LZ4", LinkCompression::kLz4);
}

}  // namespace

DistributeOptions DistributeOptionsFrom(const py::dict& arguments) {
  DistributeArguments given = From(arguments, DistributeFields(), "distribute");
  given.options.delivery = ValueOrRaise(client::ToDelivery(given.delivery));
  return std::move(given.options);
}

void BindService(py::module_& module) {
  BindEnumerations(module);
  module.def("processing_mode",
             [](const std::string& name) { return ValueOrRaise(ProcessingModeFromName(name)); });
  module.def("target_workers",
             [](const std::string& name) { return ValueOrRaise(TargetWorkersFromName(name)); });
  module.def("register_dataset", [](const std::string& service, const Dataset& dataset,
                                    const std::string& dataset_id, bool replace, double timeout) {
    absl::StatusOr<std::string> id;
    {
      WithoutGil without_gil;
      id = RegisterDataset(
          service, dataset,
          {.dataset_id = dataset_id, .replace = replace, .timeout = absl::Seconds(timeout)});
    }
    return ValueOrRaise(std::move(id));
  });
  module.def("from_dataset_id",
             [](const std::string& id, const py::dict& arguments, std::optional<Spec> spec) {
               DistributeOptions options = DistributeOptionsFrom(arguments);
               absl::StatusOr<Dataset> dataset;
               {
                 WithoutGil without_gil;
                 dataset = FromDatasetId(id, std::move(options), std::move(spec));
               }
               Dataset found = ValueOrRaise(std::move(dataset));
               RaiseIfError(found.status());
               return found;
             });
  module.def("dispatcher_settings", HelpOf<DispatcherConfig>);
  module.def("worker_settings", HelpOf<WorkerConfig>);
  BindServer<HeldDispatcher, DispatcherConfig>(module, "DispatchServer", "DispatcherConfig")
      .def_property_readonly("target", [](HeldDispatcher& self) { return (*self).target(); })
      .def_property_readonly("num_workers",
                             [](HeldDispatcher& self) { return (*self).NumWorkers(); });
  BindServer<HeldWorker, WorkerConfig>(module, "WorkerServer", "WorkerConfig")
      .def_property_readonly("address", [](HeldWorker& self) { return (*self).address(); })
      .def_property_readonly("num_tasks", [](HeldWorker& self) { return (*self).NumTasks(); })
      .def("drain", [](HeldWorker& self, double timeout) {
        absl::Status status;
        {
          WithoutGil without_gil;
          status = (*self).Drain(absl::Seconds(timeout));
        }
        RaiseIfError(status);
      });
}

}  // namespace penstock::python
