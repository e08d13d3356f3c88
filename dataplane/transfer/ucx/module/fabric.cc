// SPDX-License-Identifier: Apache-2.0
#include "dataplane/transfer/ucx/fabric.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <ucp/api/ucp.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>

#include <cstdlib>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "dataplane/transfer/ucx/module/status.h"
#include "dataplane/transfer/ucx/module/worker.h"
#include "include/status_macros.h"
#include "penstock/export.h"

namespace penstock::transfer::ucx {
namespace {

// PENSTOCK_UCX_TLS and similar variables apply only to Penstock, and override UCX_TLS.
constexpr char kPrefix[] = "PENSTOCK";

struct Default {
  const char* name;
  std::string value;
};

bool ClosesUnanswered() {
  unsigned major = 0, minor = 0, release = 0;
  ucp_get_version(&major, &minor, &release);
  return major > 1 || minor >= 14;
}

bool UserHasSet(const char* name) {
  return std::getenv(absl::StrCat("UCX_", name).c_str()) != nullptr ||
         std::getenv(absl::StrCat(kPrefix, "_UCX_", name).c_str()) != nullptr;
}

absl::Status Apply(ucp_config_t* config, std::initializer_list<Default> defaults) {
  for (const Default& one : defaults) {
    if (UserHasSet(one.name)) continue;
    RETURN_IF_ERROR(ToStatus(ucp_config_modify(config, one.name, one.value.c_str()),
                             absl::StrCat("UCX rejected the setting ", one.name)));
  }
  return absl::OkStatus();
}

absl::Status ApplyDefaults(ucp_config_t* config, Lanes lanes, bool gpu) {
  RETURN_IF_ERROR(
      Apply(config, {{"RNDV_SCHEME", "get_zcopy"},  // the receiver reads, if the lane can
                     {"KEEPALIVE_INTERVAL", "2s"}}));
  if (lanes != Lanes::kTcp && !ClosesUnanswered()) {
    RETURN_IF_ERROR(Apply(config, {{"UD_TIMEOUT", "100000000s"}}));
  }
  if (gpu) {
    // Use only the NIC nearest to the GPU. UCX knows the nearest NIC if the GPU's context is
    // current while UCX starts. A second NIC may be attached to another CPU socket, and may be the
    // nearest to the GPU of a different rank.
    RETURN_IF_ERROR(Apply(config, {{"MAX_RNDV_RAILS", "1"}}));
  }
  // UCX distinguishes GPU memory from host memory only with this transport. A UCX build without
  // cuda_copy ignores this entry.
  const std::string with = gpu ? ",cuda_copy" : "";
  switch (lanes) {
    case Lanes::kRdma:
      return Apply(config, {{"TLS", "rc,dc" + with}});  // rc and dc use ud for their wire-up
    case Lanes::kTcp:
      return Apply(config, {{"TLS", "tcp" + with}});
    case Lanes::kAny:
      break;
  }
  // Without this setting the peer-failure mode silently drops shared memory.
  return Apply(config, {{"TLS", "all"}, {"MM_ERROR_HANDLING", "y"}});
}

// Disables two things that UCX does when it is loaded: it installs crash handlers, which only the
// program should do, and it writes to the program's output, although Penstock reports failures
// itself.
void BeQuiet() {
  if (std::getenv("UCX_LOG_LEVEL") == nullptr) ucs_global_opts_set_value("LOG_LEVEL", "fatal");
  if (std::getenv("UCX_HANDLE_ERRORS") == nullptr) {
    for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ucs_debug_disable_signal(signal);
  }
}

std::string PathOfLibrary() {
  Dl_info info{};
  const auto address = reinterpret_cast<const void*>(&ucp_init_version);
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

class UcxFabric final : public Fabric {
 public:
  explicit UcxFabric(ucp_context_h context)
      : context_(context), release_(ucp_get_version_string()), path_(PathOfLibrary()) {}
  ~UcxFabric() override { ucp_cleanup(context_); }

  const std::string& release() const override { return release_; }
  const std::string& path() const override { return path_; }
  bool closes_unanswered() const override { return ClosesUnanswered(); }

  absl::StatusOr<std::unique_ptr<Worker>> MakeWorker(Worker::Events& events) override {
    return MakeUcxWorker(context_, events);
  }

  bool knows_cuda() const override {
    ucp_context_attr_t attributes{};
    attributes.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
    return ucp_context_query(context_, &attributes) == UCS_OK &&
           (attributes.memory_types & (uint64_t{1} << UCS_MEMORY_TYPE_CUDA)) != 0;
  }

  absl::StatusOr<std::optional<MemoryType>> TypeOf(Handle handle) override {
    ucp_mem_attr_t attributes{};
    attributes.field_mask = UCP_MEM_ATTR_FIELD_MEM_TYPE;
    RETURN_IF_ERROR(ToStatus(ucp_mem_query(static_cast<ucp_mem_h>(handle), &attributes),
                             "UCX cannot describe the memory that it registered"));
    for (const MemoryType type : {MemoryType::kHost, MemoryType::kCuda}) {
      if (attributes.mem_type == ToUcx(type)) return type;
    }
    return std::nullopt;
  }

  absl::StatusOr<Handle> Register(absl::Span<std::byte> memory, MemoryType type) override {
    ucp_mem_map_params_t params{};
    params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                        UCP_MEM_MAP_PARAM_FIELD_MEMORY_TYPE;
    params.memory_type = ToUcx(type);
    params.address = memory.data();
    params.length = memory.size();
    ucp_mem_h handle = nullptr;
    const ucs_status_t status = ucp_mem_map(context_, &params, &handle);
    if (status == UCS_OK) return static_cast<Handle>(handle);
    rlimit limit{};
    ::getrlimit(RLIMIT_MEMLOCK, &limit);
    return absl::ResourceExhaustedError(absl::StrCat(
        "UCX cannot register ", memory.size(), " bytes",
        type == MemoryType::kCuda ? " of a GPU's memory (" : " (", ucs_status_string(status),
        limit.rlim_cur == RLIM_INFINITY
            ? absl::StrCat(")")
            : absl::StrCat("); this process may lock ", limit.rlim_cur,
                           " bytes: raise the limit (ulimit -l unlimited, or LimitMEMLOCK of the "
                           "service)")));
  }
  void Unregister(Handle handle) override {
    ucp_mem_unmap(context_, static_cast<ucp_mem_h>(handle));
  }

 private:
  const ucp_context_h context_;
  const std::string release_;
  const std::string path_;
};

absl::StatusOr<ucp_context_h> Start(Lanes lanes, bool gpu) {
  ucp_config_t* config = nullptr;
  RETURN_IF_ERROR(
      ToStatus(ucp_config_read(kPrefix, nullptr, &config), "UCX cannot read its settings"));
  const std::unique_ptr<ucp_config_t, void (*)(ucp_config_t*)> owner(config, &ucp_config_release);
  RETURN_IF_ERROR(ApplyDefaults(config, lanes, gpu));

  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;  // any thread may register memory
  ucp_context_h context = nullptr;
  const ucs_status_t status = ucp_init(&params, config, &context);
  if (status == UCS_ERR_NO_DEVICE) {
    return absl::NotFoundError("UCX finds no device on this machine for the requested lanes");
  }
  RETURN_IF_ERROR(ToStatus(status, "UCX could not start"));
  return context;
}

absl::StatusOr<Fabric*> Open(Lanes lanes, bool gpu) {
  BeQuiet();
  ASSIGN_OR_RETURN(const ucp_context_h plain, Start(lanes, /*gpu=*/false));
  auto fabric = std::make_unique<UcxFabric>(plain);
  if (!gpu) return fabric.release();
  // The GPU is added only now. UCX counts the GPU as a device, and would otherwise not report a
  // missing NIC.
  const absl::StatusOr<ucp_context_h> context = Start(lanes, /*gpu=*/true);
  if (!context.ok()) return fabric.release();
  auto with_gpu = std::make_unique<UcxFabric>(*context);
  return with_gpu->knows_cuda() ? with_gpu.release() : fabric.release();
}

}  // namespace
}  // namespace penstock::transfer::ucx

extern "C" PENSTOCK_EXPORT penstock::transfer::ucx::Fabric* penstock_open_ucx(
    uint32_t version, penstock::transfer::ucx::Lanes lanes, bool gpu, absl::Status* status) {
  using namespace penstock::transfer::ucx;
  if (version != kFabricVersion) {
    *status = absl::FailedPreconditionError(
        absl::StrCat("it was built for a different Penstock (interface ", kFabricVersion, ", not ",
                     version, ")"));
    return nullptr;
  }
  absl::StatusOr<Fabric*> fabric = Open(lanes, gpu);
  *status = fabric.status();
  return fabric.ok() ? *fabric : nullptr;
}
