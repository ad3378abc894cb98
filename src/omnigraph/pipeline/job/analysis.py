"""What Spark's analysis says about a query, in the words of a pipeline file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, IllegalArgumentException, ParseException, PySparkException

from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.pipeline.failures import translate
from omnigraph.pipeline.job.problems import Problems, Spot, nearest

_REFUSALS = (AnalysisException, IllegalArgumentException, ParseException)


@contextmanager
def analysed(problems: Problems, spot: Spot, doing: str, known: Iterable[str] = ()) -> Iterator[None]:
    """Note what Spark refuses at this place; what is no fault of the query is raised. `known`: names to hint at."""
    try:
        yield
    except _REFUSALS as error:
        problems.add(spot, *explained(error, known))
    except Py4JJavaError as error:
        problems.add(spot, *_java_explained(error))
    except (PySparkException, Py4JError) as error:
        raise translate(error, doing) from error
    except (BadRequest, NotFound) as error:
        problems.add(spot, error.code, f"{error.describe()}{'. ' + error.hint if error.hint else ''}")


def explained(error: PySparkException, known: Iterable[str] = ()) -> tuple[str, str]:
    """A reason and a message; decided on Spark's condition names."""
    told = {name: value.strip("`") for name, value in (error.getMessageParameters() or {}).items()}
    reason = "bad_sql" if isinstance(error, AnalysisException) else "refused"
    return _told(error.getCondition() or "", told, error.getMessage() or str(error), list(known), reason)


def _java_explained(error: Py4JJavaError) -> tuple[str, str]:
    """What a reader or a driver raised, of which Spark made no error of its own."""
    thrown = error.java_exception
    try:
        condition, told = str(thrown.getCondition() or ""), dict(thrown.getMessageParameters())
    except Py4JError:  # not one of Spark's
        condition, told = "", {}
    text = str(thrown.getMessage() or thrown.getClass().getSimpleName())
    return _told(condition, told, text, [], "refused")


def _told(condition: str, told: Mapping[str, str], text: str, known: Sequence[str], reason: str) -> tuple[str, str]:
    if condition.startswith("UNRESOLVED_COLUMN"):
        name = _plain(told.get("objectName", ""))
        proposals = [_plain(each) for each in told.get("proposal", "").split(", ") if each]
        return "unknown_column", f"unknown column '{name}'{nearest(name, proposals or known)}"
    if condition == "TABLE_OR_VIEW_NOT_FOUND":
        name = _plain(told.get("relationName", ""))
        return "unknown_view", f"unknown view '{name}'{nearest(name, known)}"
    if condition == "PATH_NOT_FOUND":
        return "not_found", f"no file at {told.get('path', '')}"
    if condition == "DATA_SOURCE_NOT_FOUND":
        return "unknown_format", f"Spark knows no format '{told.get('provider', '')}'; name its jar in spark.conf"
    first = next((line.strip() for line in text.splitlines() if line.strip()), "no message")
    return reason, re.sub(r"^\[[A-Z0-9_.]+\] ", "", re.sub(r" SQLSTATE: \w+.*", "", first))


def _plain(name: str) -> str:
    return name.replace("`", "").rpartition(".")[2] or name
