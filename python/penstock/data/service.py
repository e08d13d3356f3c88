# SPDX-License-Identifier: Apache-2.0
"""The data service, with the names and arguments of tf.data.experimental.service.

    dispatcher = DispatchServer()
    worker = WorkerServer(WorkerConfig(dispatcher_address=dispatcher.target))
    ds = ds.apply(distribute("distributed_epoch", dispatcher.target))
"""

import dataclasses
import sys
from typing import Optional

from .. import _core, dataset as datasets, errors, functions, leaving, moved, spec
from .._core import (  # noqa: F401
    AckMode,
    Compression,
    MergeOrder,
    RemainderPolicy,
    RoundErrorPolicy,
    ShardingPolicy,
    Visitation,
)

# Options that may be given as a string, the name of a member in any case.
_ENUMS = {
    "ack_mode": AckMode,
    "compression": Compression,
    "on_error": RoundErrorPolicy,
    "order": MergeOrder,
    "remainder_policy": RemainderPolicy,
    "visitation": Visitation,
}


def __getattr__(name):
    return moved.find(
        sys.modules[__name__], name, {"Keep": "AckMode", "Rests": "RemainderPolicy", "RoundErrors": "RoundErrorPolicy"}
    )


@dataclasses.dataclass(frozen=True)
class CrossTrainerCache:
    """Lets trainers with different ids read the same elements of one sliding window. Needs a job_name."""

    trainer_id: str

    def __post_init__(self):
        if not self.trainer_id:
            raise ValueError("trainer_id must not be empty")


def distribute(
    processing_mode,
    service,
    job_name=None,
    consumer_index=None,
    num_consumers=None,
    max_outstanding_requests=None,
    data_transfer_protocol=None,
    compression="AUTO",
    cross_trainer_cache=None,
    target_workers="AUTO",
):
    """For `Dataset.apply`. Nodes before it run on the workers of `service`, and nodes after it in this process.

    processing_mode: a ShardingPolicy, or "parallel_epochs" (every worker reads everything) or "distributed_epoch"
    (each element once). service: "grpc://host:port", or several addresses, "grpc://a:5050,b:5050". job_name: readers
    with the same name share one pass.
    consumer_index and num_consumers: coordinated reads. compression: "AUTO", "SNAPPY", "LZ4" or None.
    """
    options = _options(
        processing_mode,
        service,
        job_name=job_name,
        consumer_index=consumer_index,
        num_consumers=num_consumers,
        max_outstanding_requests=max_outstanding_requests,
        data_transfer_protocol=data_transfer_protocol,
        compression=_compression(compression),
        cross_trainer_cache=cross_trainer_cache,
        target_workers=target_workers,
    )

    def apply(dataset):
        return dataset._alike(dataset._core.distribute(options))

    return apply


def register_dataset(service, dataset, compression="AUTO", dataset_id=None):
    """Registers `dataset` and returns its id. A dataset with an equal definition gets the id that it already has."""
    _compression(compression)  # only validates it: the reader chooses the compression of links
    return _core.register_dataset(
        _target(service), dataset._core, "" if dataset_id is None else _id(dataset_id), False, 60.0
    )


def from_dataset_id(
    processing_mode,
    service,
    dataset_id,
    element_spec=None,
    job_name=None,
    consumer_index=None,
    num_consumers=None,
    max_outstanding_requests=None,
    data_transfer_protocol=None,
    cross_trainer_cache=None,
    target_workers="AUTO",
):
    """Reads a dataset that this or another process has registered. Without `element_spec` the dispatcher provides it."""
    options = _options(
        processing_mode,
        service,
        job_name=job_name,
        consumer_index=consumer_index,
        num_consumers=num_consumers,
        max_outstanding_requests=max_outstanding_requests,
        data_transfer_protocol=data_transfer_protocol,
        cross_trainer_cache=cross_trainer_cache,
        target_workers=target_workers,
    )
    plain = None if element_spec is None else spec.plain(element_spec)
    return datasets.Dataset(_core.from_dataset_id(_id(dataset_id), options, plain), element_spec)


def _help(settings):
    """Returns one line for each setting, the same help as for the commands and the settings file."""
    return "\n\n" + "\n".join(f"{name}: {text}" for name, text in settings)


@dataclasses.dataclass(frozen=True)
class DispatcherConfig:
    """Configuration of a dispatcher: tf.data service's fields first, then Penstock's own (include/penstock/server.h).
    None means the default."""

    port: int = 0
    protocol: Optional[str] = None
    work_dir: Optional[str] = None
    fault_tolerant_mode: bool = False
    worker_addresses: Optional[list] = None
    job_gc_check_interval_ms: Optional[int] = None  # accepted and ignored: nothing is polled
    job_gc_timeout_ms: Optional[int] = None
    worker_timeout_ms: Optional[int] = None
    worker_max_concurrent_snapshots: int = 0  # there are no snapshots
    host: Optional[str] = None
    client_timeout_ms: Optional[int] = None
    heartbeat_interval_ms: Optional[int] = None
    gc_dynamic_sharding_jobs: Optional[bool] = None
    abandoned_job_ttl_ms: Optional[int] = None
    dataset_ttl_ms: Optional[int] = None
    deployment_mode: Optional[str] = None
    metrics_port: Optional[int] = None
    metrics_token: Optional[str] = None
    tls: Optional[dict] = None
    auth_file: Optional[str] = None
    journal_key_file: Optional[str] = None
    max_jobs_per_namespace: Optional[int] = None
    max_dataset_bytes_per_namespace: Optional[int] = None
    max_partitions_per_namespace: Optional[int] = None
    max_clients_per_namespace: Optional[int] = None
    max_worker_percent_per_namespace: Optional[int] = None
    namespaces: Optional[dict] = None  # {"name": {"max_jobs": 3}}; other limits are those of each namespace, above
    max_links: Optional[int] = None
    metrics_host: Optional[str] = None
    journal: Optional[str] = None
    leader_election: Optional[str] = None
    leader_lease_ms: Optional[int] = None
    etcd_user: Optional[str] = None
    etcd_password_file: Optional[str] = None
    etcd_ca: Optional[str] = None
    etcd_certificate: Optional[str] = None
    etcd_key: Optional[str] = None


@dataclasses.dataclass(frozen=True)
class WorkerConfig:
    """Configuration of a worker: tf.data service's fields first, then Penstock's own (include/penstock/server.h). None
    means the default; for python_command and python_path it is this program's interpreter and its sys.path."""

    dispatcher_address: str
    worker_address: Optional[str] = None
    port: int = 0
    protocol: Optional[str] = None
    heartbeat_interval_ms: Optional[int] = None
    dispatcher_timeout_ms: Optional[int] = None
    data_transfer_protocol: Optional[str] = None
    data_transfer_address: Optional[str] = None
    host: Optional[str] = None
    shutdown_quiet_period_ms: Optional[int] = None
    fallback: Optional[list] = None
    ucx_lanes: Optional[str] = None
    transports: Optional[list] = None
    plugins: Optional[list] = None
    plugin_allow: Optional[list] = None
    python: Optional[int] = None
    python_command: Optional[str] = None
    python_path: Optional[list] = None
    python_allow: Optional[list] = None
    python_env: Optional[list] = None
    data_transfer_port: Optional[int] = None
    worker_tags: Optional[list] = None
    permits: Optional[int] = None
    threads: Optional[int] = None
    job_threads: Optional[int] = None
    memory_budget_bytes: Optional[int] = None
    ram_budget_bytes: Optional[int] = None
    buffer_budget_bytes: Optional[int] = None
    job_buffer_budget_bytes: Optional[int] = None
    cross_trainer_cache_size_bytes: Optional[int] = None
    max_loan_bytes: Optional[int] = None
    shared_pool_bytes: Optional[int] = None
    metrics_port: Optional[int] = None
    metrics_token: Optional[str] = None
    tls: Optional[dict] = None
    files_allow: Optional[list] = None
    cache_dir: Optional[str] = None
    token_file: Optional[str] = None
    metrics_host: Optional[str] = None
    allowed_plugins: Optional[list] = None  # plugin_allow before 0.9

    def __post_init__(self):
        if self.allowed_plugins is None:
            return
        moved.warn("WorkerConfig.allowed_plugins", "plugin_allow", stacklevel=4)
        if self.plugin_allow is not None:
            raise TypeError("allowed_plugins and plugin_allow are the same field; give plugin_allow only")
        object.__setattr__(self, "plugin_allow", self.allowed_plugins)
        object.__setattr__(self, "allowed_plugins", None)


DispatcherConfig.__doc__ += _help(_core.dispatcher_settings())
WorkerConfig.__doc__ += _help(_core.worker_settings())


class _Server:
    """A server in this process; `start()` creates the C++ server."""

    def __init__(self, config, start):
        self._config = config
        self._core = None
        self._stopped = False
        if start:
            self.start()

    def start(self):
        """Starts the server if it is not running. A stopped server stays stopped, as in tf.data service."""
        if self._stopped:
            raise errors.FailedPreconditionError(
                f"this {type(self).__name__} was stopped and cannot be started again; create a new one"
            )
        if self._core is None:
            self._core = self._make(_given(self._config))
            leaving.stop_at_exit(self._kind, self)

    def join(self):
        """Waits until the server is stopped or has ended by itself. Raises the reason if it ended by itself."""
        self._started().join()

    def stop(self):
        """Stops the server."""
        if self._core is not None:
            self._core.stop()
            self._stopped = True

    _stop = stop  # the name in tf.data service's tests

    @property
    def port(self):
        """The port that the server bound."""
        return self._started().port

    @property
    def metrics_port(self):
        """The port of the page /metrics; -1 if there is none."""
        return self._started().metrics_port

    def _started(self):
        if self._core is None:
            raise RuntimeError(f"this {type(self).__name__} has not been started; call start() first")
        return self._core

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()


class DispatchServer(_Server):
    """A dispatcher in this process, on a free port unless the config names one."""

    _make = staticmethod(_core.DispatchServer)
    _kind = leaving.DISPATCHERS

    def __init__(self, config=None, start=True):
        super().__init__(config or DispatcherConfig(), start)

    @property
    def target(self):
        """The address to give as `service`: "grpc://localhost:5050"."""
        return self._started().target

    @property
    def address(self):
        """The host and port: "localhost:5050"."""
        return self.target.split("://")[1]

    _address = address  # the name in tf.data service's tests

    def _num_workers(self):
        return self._started().num_workers


class WorkerServer(_Server):
    """A worker in this process. `start()` returns when the dispatcher has accepted the worker."""

    _make = staticmethod(_core.WorkerServer)
    _kind = leaving.WORKERS

    def __init__(self, config, start=True):
        if config is None or not config.dispatcher_address:
            raise ValueError("dispatcher_address is missing; config must be a WorkerConfig with a dispatcher_address")
        interpreter, path = functions.interpreter_and_path()
        super().__init__(
            dataclasses.replace(
                config,
                python_command=config.python_command or interpreter,
                python_path=path if config.python_path is None else config.python_path,
            ),
            start,
        )

    @property
    def address(self):
        """The address that is announced to clients: "localhost:5051"."""
        return self._started().address

    _address = address  # the name in tf.data service's tests

    def drain(self, timeout=60.0):
        """Hands all partitions to other workers, then stops."""
        self._started()
        self._stopped = True
        self._core.drain(timeout)


# --- Inside ------------------------------------------------------------------------------------

_NOT_OURS = {"job_gc_check_interval_ms", "worker_max_concurrent_snapshots"}


def _given(config):
    fields = {field.name: getattr(config, field.name) for field in dataclasses.fields(config)}
    return {name: value for name, value in fields.items() if value is not None and name not in _NOT_OURS}


def _options(processing_mode, service, cross_trainer_cache=None, target_workers="AUTO", **others):
    """Returns DistributeOptions for _core; None is left out."""
    others = moved.keywords(others, {"keep": "ack_mode", "rests": "remainder_policy"})
    options = {name: value for name, value in others.items() if value is not None}
    for name in _ENUMS.keys() & options.keys():
        options[name] = _member(name, _ENUMS[name], options[name])
    options["processing_mode"] = _mode(processing_mode)
    options["service"] = _target(service)
    for name in ("consumer_index", "num_consumers", "max_outstanding_requests"):
        if name in options and (isinstance(options[name], bool) or not hasattr(options[name], "__index__")):
            raise ValueError(f"{name} must be an integer, not {options[name]!r}")
    if cross_trainer_cache is not None:
        if not isinstance(cross_trainer_cache, CrossTrainerCache):
            raise ValueError(f"cross_trainer_cache must be a CrossTrainerCache, not {cross_trainer_cache!r}")
        options["trainer_id"] = cross_trainer_cache.trainer_id
    options["target_workers"] = _core.target_workers(target_workers)
    return options


def _member(option, enum, value):
    """Returns the member of `enum` that `value` is or names."""
    if isinstance(value, enum):
        return value
    if isinstance(value, str) and value.upper() in enum.__members__:
        return enum.__members__[value.upper()]
    known = ", ".join(repr(name) for name in enum.__members__ if name not in ("TAKEN", "COMMITTED"))
    raise ValueError(f"{option} must be a {enum.__name__} or one of {known}, not {value!r}")


def _mode(processing_mode):
    if isinstance(processing_mode, ShardingPolicy):
        return processing_mode
    if isinstance(processing_mode, str):
        return _core.processing_mode(processing_mode)
    raise ValueError(
        f"processing_mode must be a ShardingPolicy, 'parallel_epochs' or 'distributed_epoch', not {processing_mode!r}"
    )


def _target(service):
    """Returns the target of a pair (protocol, address), or of both in one string."""
    if isinstance(service, tuple):
        protocol, address = service
        return f"{protocol}://{address}"
    if not isinstance(service, str) or not service:
        raise ValueError(f"service must be a string like 'grpc://localhost:5050', not {service!r}")
    return service


def _compression(name):
    return Compression.NONE if name is None else _member("compression", Compression, name)


def _id(dataset_id):
    if isinstance(dataset_id, bytes):
        return dataset_id.decode()
    return dataset_id if isinstance(dataset_id, str) else str(int(dataset_id))
