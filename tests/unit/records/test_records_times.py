"""Whole columns of date texts mean what each text means alone."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.catalog.values import datetime_text, parse_date, parse_datetime_ms
from omnigraph.records.times import FIRST_DAY, FIRST_MS, LAST_DAY, LAST_MS, parse_days, parse_ms

pytestmark = pytest.mark.slow

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CHARACTERS = st.text(st.sampled_from("0123456789-:.TZ +é"), max_size=32)
OFFSETS = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(timezones=OFFSETS, allow_imaginary=False).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)


def single_day(text: str | None) -> int | None:
    try:
        return None if text is None else (parse_date(text) - date(1970, 1, 1)).days
    except ValueError:
        return None


def single_ms(text: str | None) -> int | None:
    """The reader of literals, minus the years it cannot write back."""
    try:
        ms = None if text is None else parse_datetime_ms(text)
        datetime_text(ms or 0)
    except ValueError:
        return None
    return ms


@st.composite
def mangled(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> str:
    """A text that is almost right."""
    text = draw(texts)
    place = draw(st.integers(0, max(0, len(text) - 1)))
    return text[:place] + draw(st.sampled_from(["", "0", "9", "-", ":", "Z", ".", " ", "é"])) + text[place + 1 :]


DATES = st.dates().map(date.isoformat)
MOMENT_TEXTS = st.one_of(
    MOMENTS.map(datetime.isoformat),
    MOMENTS.map(lambda m: m.isoformat(" ", "milliseconds")),
    MOMENTS.map(lambda m: m.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z" if 1 < m.year < 9999 else ""),
    DATES,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(DATES, mangled(DATES), CHARACTERS, st.none()), max_size=12), st.integers(0, 3))
def test_a_column_of_dates_reads_like_each_date(texts: list[str | None], skipped: int) -> None:
    days, good = parse_days(pa.array(texts, pa.string()).slice(skipped))
    assert [int(day) if ok else None for day, ok in zip(days, good, strict=True)] == [
        single_day(text) for text in texts[skipped:]
    ]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(MOMENT_TEXTS, mangled(MOMENT_TEXTS), CHARACTERS, st.none()), max_size=12), st.integers(0, 3))
def test_a_column_of_moments_reads_like_each_moment(texts: list[str | None], skipped: int) -> None:
    ms, good = parse_ms(pa.array(texts, pa.string()).slice(skipped))
    assert [int(value) if ok else None for value, ok in zip(ms, good, strict=True)] == [
        single_ms(text) for text in texts[skipped:]
    ]


def test_text_reaches_from_the_year_1_to_the_year_9999() -> None:
    assert (date(1, 1, 1) - date(1970, 1, 1)).days == FIRST_DAY
    assert (date(9999, 12, 31) - date(1970, 1, 1)).days == LAST_DAY
    first = datetime(1, 1, 1, tzinfo=UTC) - EPOCH
    last = datetime(9999, 12, 31, 23, 59, 59, 999000, tzinfo=UTC) - EPOCH
    assert (first // timedelta(milliseconds=1), last // timedelta(milliseconds=1)) == (FIRST_MS, LAST_MS)
