"""Every setting in one place: the only module that reads the environment and the settings file.

Arguments win over the environment, the environment over the file. The object is immutable and can be pickled, so
executors get it whole and read neither environment nor file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any

import yaml

from omnigraph.base.clock import duration
from omnigraph.base.errors import BadRequest

EMBEDDING_PROVIDERS = ("openai-compatible", "openai", "gemini", "mock")


def _count(text: Any) -> int:
    if isinstance(text, bool) or not re.fullmatch(r"[0-9_ ]+", str(text).strip()):
        raise ValueError("expects a whole number")
    return int(str(text).replace("_", "").replace(" ", ""))


def _bytes(text: Any) -> int:
    """`512 MiB`, `1GiB` or a plain number of bytes."""
    matched = re.fullmatch(r"([0-9][0-9_ ]*?)\s*(KiB|MiB|GiB)?", str(text).strip())
    if isinstance(text, bool) or matched is None:
        raise ValueError("expects bytes, for example 512 MiB")
    return _count(matched[1]) * {None: 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[matched[2]]


def _duration(text: Any) -> timedelta:
    return duration(str(text))


def _text(text: Any) -> str:
    if not isinstance(text, str) or not text:
        raise ValueError("expects a text")
    return text


def _conf(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise ValueError("expects a mapping")
    return {str(k): str(v) for k, v in value.items()}


def _graphs(value: Any) -> dict[str, str]:
    """`name: uri` or `name: {uri: …}`; the other members of a graph belong to the server."""
    if not isinstance(value, dict):
        raise ValueError("expects a mapping of names to URIs")
    uris = {str(name): graph.get("uri") if isinstance(graph, dict) else graph for name, graph in value.items()}
    return {name: _text(uri) for name, uri in uris.items()}


def _secret(env: str) -> Any:
    """Comes from the environment or an argument, never from the file, and is not printed."""
    meta = {"name": env, "env": env, "parse": _text, "secret": True}
    return field(default=None, metadata=meta, repr=False)


def _secret_named_elsewhere() -> Any:
    """A secret whose variable another setting names; `Settings.resolve` fetches it, so executors need not."""
    return field(default=None, metadata={"name": "", "env": None, "parse": _text, "secret": True}, repr=False)


def _setting(name: str, env: str | None, default: Any, parse: Callable[[Any], Any]) -> Any:
    meta = {"name": name, "env": env, "parse": parse}
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=meta)
    return field(default=default, metadata=meta)


def _flag(text: Any) -> bool:
    known = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    if str(text).strip().lower() not in known:
        raise ValueError("expects true or false")
    return known[str(text).strip().lower()]


def _one_of(*allowed: str) -> Callable[[Any], str]:
    def parse(text: Any) -> str:
        if text not in allowed:
            raise ValueError(f"expects one of {', '.join(allowed)}")
        return str(text)

    return parse


@dataclass(frozen=True)
class Settings:
    storage_durability: str = _setting("storage.durability", "OMNIGRAPH_DURABILITY", "full", _one_of("full", "os"))
    storage_timeout_ms: int = _setting("storage.timeout_ms", "OMNIGRAPH_STORAGE_TIMEOUT_MS", 30_000, _count)
    storage_retry_timeout_ms: int = _setting(
        "storage.retry_timeout_ms", "OMNIGRAPH_STORAGE_RETRY_TIMEOUT_MS", 60_000, _count
    )
    aws_region: str | None = _setting("storage.aws.region", "AWS_REGION", None, _text)
    aws_access_key_id: str | None = _secret("AWS_ACCESS_KEY_ID")
    aws_secret_access_key: str | None = _secret("AWS_SECRET_ACCESS_KEY")
    aws_session_token: str | None = _secret("AWS_SESSION_TOKEN")
    aws_endpoint_url: str | None = _setting("storage.aws.endpoint_url", "AWS_ENDPOINT_URL", None, _text)
    aws_endpoint_url_s3: str | None = _setting("storage.aws.endpoint_url_s3", "AWS_ENDPOINT_URL_S3", None, _text)
    aws_path_style: bool = _setting("storage.aws.s3_force_path_style", "AWS_S3_FORCE_PATH_STYLE", False, _flag)
    aws_allow_http: bool = _setting("storage.aws.allow_http", "AWS_ALLOW_HTTP", False, _flag)
    write_lease_lifetime_ms: int = _setting("write.lease_lifetime_ms", "OMNIGRAPH_LEASE_LIFETIME_MS", 30_000, _count)
    write_lease_heartbeat_ms: int = _setting("write.lease_heartbeat_ms", "OMNIGRAPH_LEASE_HEARTBEAT_MS", 10_000, _count)
    write_lock_timeout_ms: int = _setting("write.lock_timeout_ms", "OMNIGRAPH_LOCK_TIMEOUT_MS", 60_000, _count)
    write_retries: int = _setting("write.retries", "OMNIGRAPH_RETRIES", 32, _count)
    load_max_errors: int = _setting("load.max_errors", None, 20, _count)
    load_max_line_bytes: int = _setting("load.max_line_bytes", "OMNIGRAPH_MAX_LINE_BYTES", 32 << 20, _bytes)
    load_batch_rows: int = _setting("load.batch_rows", "OMNIGRAPH_BATCH_ROWS", 8_192, _count)
    load_auto_spark_bytes: int = _setting("load.auto_spark_bytes", "OMNIGRAPH_AUTO_SPARK_BYTES", 256 << 20, _bytes)
    merge_auto_spark_rows: int = _setting("merge.auto_spark_rows", "OMNIGRAPH_AUTO_SPARK_ROWS", 20_000_000, _count)
    upkeep_concurrency: int = _setting("upkeep.concurrency", "OMNIGRAPH_MAINTENANCE_CONCURRENCY", 8, _count)
    limits_spill_dir: str | None = _setting("limits.spill_dir", "OMNIGRAPH_SPILL_DIR", None, _text)
    limits_memory_bytes: int = _setting("limits.memory_bytes", "OMNIGRAPH_MEMORY_BYTES", 512 << 20, _bytes)
    limits_query_timeout_ms: int = _setting("limits.query_timeout_ms", "OMNIGRAPH_QUERY_TIMEOUT_MS", 0, _count)
    limits_query_memory_bytes: int = _setting(
        "limits.query_memory_bytes", "OMNIGRAPH_QUERY_MEMORY_BYTES", 2 << 30, _bytes
    )
    limits_result_rows: int = _setting("limits.result_rows", "OMNIGRAPH_RESULT_ROWS", 0, _count)
    cache_hot_bytes: int = _setting("cache.hot_bytes", "OMNIGRAPH_HOT_CACHE_BYTES", 256 << 20, _bytes)
    cache_csr_bytes: int = _setting("cache.csr_bytes", "OMNIGRAPH_CSR_CACHE_BYTES", 512 << 20, _bytes)
    read_traversal_mode: str = _setting(
        "read.traversal_mode", "OMNIGRAPH_TRAVERSAL_MODE", "auto", _one_of("auto", "indexed", "csr")
    )
    read_expand_max_frontier: int = _setting(
        "read.expand_max_frontier", "OMNIGRAPH_EXPAND_INDEXED_MAX_FRONTIER", 1_024, _count
    )
    read_expand_max_hops: int = _setting("read.expand_max_hops", "OMNIGRAPH_EXPAND_INDEXED_MAX_HOPS", 6, _count)
    search_vector_mode: str = _setting("search.vector_mode", "OMNIGRAPH_VECTOR_MODE", "auto", _one_of("auto", "exact"))
    manifest_compact_fragments: int = _setting(
        "manifest.compact_fragments", "OMNIGRAPH_MANIFEST_COMPACT_FRAGMENTS", 50, _count
    )
    projections_max_lag: int = _setting("projections.max_lag", "OMNIGRAPH_PROJECTIONS_MAX_LAG", 16, _count)
    staging_heartbeat_s: int = _setting("staging.heartbeat_s", "OMNIGRAPH_STAGING_HEARTBEAT_S", 30, _count)
    staging_lifetime_s: int = _setting("staging.lifetime_s", "OMNIGRAPH_STAGING_LIFETIME_S", 600, _count)
    staging_grace: timedelta = _setting("staging.grace", "OMNIGRAPH_STAGING_GRACE", timedelta(days=7), _duration)
    spark_master: str | None = _setting("spark.master", "OMNIGRAPH_SPARK_MASTER", None, _text)
    spark_remote: str | None = _setting("spark.remote", "SPARK_REMOTE", None, _text)
    spark_conf: dict[str, str] = _setting("spark.conf", None, {}, _conf)
    spark_java_home: str | None = _setting("spark.java_home", None, None, _text)
    environment_java_home: str | None = _setting("spark.environment_java_home", "JAVA_HOME", None, _text)
    search_path: str = _setting("spark.search_path", "PATH", "", str)
    embeddings_mock: bool = _setting("embeddings.mock", "OMNIGRAPH_EMBEDDINGS_MOCK", False, _flag)
    embeddings_provider: str = _setting(
        "embeddings.provider", "OMNIGRAPH_EMBED_PROVIDER", "openai-compatible", _one_of(*EMBEDDING_PROVIDERS)
    )
    embeddings_base_url: str | None = _setting("embeddings.base_url", "OMNIGRAPH_EMBED_BASE_URL", None, _text)
    embeddings_model: str | None = _setting("embeddings.model", "OMNIGRAPH_EMBED_MODEL", None, _text)
    embeddings_api_key_env: str | None = _setting("embeddings.api_key_env", None, None, _text)
    embeddings_api_key: str | None = _secret_named_elsewhere()
    openrouter_api_key: str | None = _secret("OPENROUTER_API_KEY")
    openai_api_key: str | None = _secret("OPENAI_API_KEY")
    gemini_api_key: str | None = _secret("GEMINI_API_KEY")
    embeddings_deadline_ms: int = _setting("embeddings.deadline_ms", "OMNIGRAPH_EMBED_DEADLINE_MS", 60_000, _count)
    embeddings_timeout_ms: int = _setting("embeddings.timeout_ms", "OMNIGRAPH_EMBED_TIMEOUT_MS", 30_000, _count)
    embeddings_retry_attempts: int = _setting("embeddings.retry_attempts", "OMNIGRAPH_EMBED_RETRY_ATTEMPTS", 4, _count)
    embeddings_retry_backoff_ms: int = _setting(
        "embeddings.retry_backoff_ms", "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", 200, _count
    )
    embeddings_requests_per_minute: int = _setting(
        "embeddings.requests_per_minute", "OMNIGRAPH_EMBED_REQUESTS_PER_MINUTE", 0, _count
    )
    cli_graph: str | None = _setting("cli.graph", "OMNIGRAPH_STORE", None, _text)
    cli_branch: str = _setting("cli.branch", None, "main", _text)
    cli_actor: str | None = _setting("cli.actor", "OMNIGRAPH_ACTOR", None, _text)
    cli_format: str = _setting("cli.format", None, "table", _text)
    log_level: str = _setting("log.level", "OMNIGRAPH_LOG", "warning", _text)
    graphs: dict[str, str] = _setting("graphs", None, {}, _graphs)
    graph_queries: dict[str, str] = _setting("graphs.*.queries", None, {}, _conf)

    @staticmethod
    def resolve(config: str | None = None, **arguments: Any) -> Settings:
        """Settings from arguments, environment and file, in that order of precedence."""
        path = config or os.environ.get("OMNIGRAPH_CONFIG")
        values = _from_file(path, required=path is not None)
        set_there: dict[str, Any] = {}
        for setting in fields(Settings):
            variable = setting.metadata["env"]
            if variable and os.environ.get(variable):
                set_there[setting.name] = _parsed(setting.metadata, os.environ[variable], f"environment {variable}")
        known = {f.name for f in fields(Settings)}
        for name in arguments:
            if name not in known:
                raise BadRequest(f"unknown setting '{name}'")
        given = {name: value for name, value in arguments.items() if value is not None}
        return Settings(**_with_named_key(_over(_over(values, set_there), given)))


def _over(lower: dict[str, Any], upper: dict[str, Any]) -> dict[str, Any]:
    """Both levels; a Spark named by the upper one hides whichever the lower one names."""
    spark = {"spark_master", "spark_remote"}
    hidden = spark if spark & upper.keys() else set()
    return {name: value for name, value in lower.items() if name not in hidden} | upper


def _with_named_key(values: dict[str, Any]) -> dict[str, Any]:
    """The embedding key from the variable that `embeddings.api_key_env` names."""
    variable = values.get("embeddings_api_key_env")
    if variable is None or values.get("embeddings_api_key") is not None:
        return values
    return values | {"embeddings_api_key": os.environ.get(variable) or None}


def environment_value(name: str) -> str | None:
    """A value that a file leaves to the environment, such as a password; None when it is not set."""
    return os.environ.get(name)


def _parsed(meta: Mapping[str, Any], value: Any, place: str) -> Any:
    try:
        return meta["parse"](value)
    except ValueError as error:
        raise BadRequest(f"{place}: {meta['name']} {error}, not {value!r}") from error


def _from_file(path: str | None, required: bool) -> dict[str, Any]:
    path = path or "omnigraph.yaml"
    try:
        with open(path, encoding="utf-8") as file:
            content = yaml.safe_load(file) or {}
    except FileNotFoundError:
        if required:
            raise BadRequest(f"settings file '{path}' not found") from None
        return {}
    except (yaml.YAMLError, UnicodeDecodeError, OSError) as error:
        raise BadRequest(f"settings file '{path}' cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise BadRequest(f"settings file '{path}' must be a mapping")
    if content.pop("version", 1) != 1:
        raise BadRequest(f"{path}: version must be 1")
    by_name = {f.metadata["name"]: f for f in fields(Settings) if not f.metadata.get("secret")}
    values: dict[str, Any] = {}
    for name, value in _flattened(content, set(by_name)):
        if name not in by_name:
            raise BadRequest(f"{path}: unknown setting '{name}'")
        values[by_name[name].name] = _parsed(by_name[name].metadata, value, path)
    folder, graphs = os.path.dirname(path), values.get("graphs", {})
    values["graphs"] = {name: _beside(folder, uri) for name, uri in graphs.items()}
    told = {name: graph.get("queries") for name, graph in content.get("graphs", {}).items() if isinstance(graph, dict)}
    values["graph_queries"] = {str(name): _beside(folder, str(queries)) for name, queries in told.items() if queries}
    if values.get("cli_graph") and values["cli_graph"] not in graphs:
        values["cli_graph"] = _beside(folder, values["cli_graph"])
    return values


def _beside(folder: str, uri: str) -> str:
    """Relative paths of a settings file start where the file lies."""
    return uri if "://" in uri or uri.startswith("~") else os.path.join(folder, uri)


def _flattened(content: Mapping[str, Any], whole: set[str], prefix: str = "") -> list[tuple[str, Any]]:
    flat: list[tuple[str, Any]] = []
    for key, value in content.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and name not in whole:
            flat += _flattened(value, whole, f"{name}.")
        else:
            flat.append((name, value))
    return flat
