"""A lending library's lake: who reads, what there is to read, who borrowed what. Some of it is dirty, as lakes are.

python generate.py FOLDER [ROWS]

The same ROWS give the same bytes. ROWS counts nodes and edges together.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

FIRST = """Ada Amara Anton Beatriz Bruno Carla Chidi Clara Dmitri Elena Emil Farah Felix Greta Hana Hugo Ines Ivan Jonas
Kaito Lars Leila Lucia Malik Marta Mei Mina Nadia Noor Olga Omar Paula Pedro Priya Rafael Rosa Samir Sofia Tariq Tomas
Ursula Vera Viktor Wanda Xavier Yara Yusuf Zoe"""
LAST = """Abe Almeida Andersen Bauer Bianchi Castro Cohen Costa Dahl Diallo Dubois Eriksen Farkas Fischer Garcia Haddad
Hansen Hoang Ivanova Jansen Kaya Keller Kim Kowalski Larsen Lopez Mensah Moreau Moreno Nakamura Novak Okafor Olsen
Pereira Petrov Quispe Ramos Rossi Sato Schmidt Silva Tanaka Torres Varga Virtanen Weber Yilmaz Zhang"""
CITIES = "Bergen Bologna Ghent Graz Leiden Lyon Malmo Porto Seville Tartu Turku Valencia"
TIERS = "basic plus student family"
GENRES = "Novel Crime Fantasy History Science Essay Poetry"
ADJECTIVES = "Quiet Last Hidden Salt Northern Borrowed Paper Broken Winter Unwritten Silver Second"
NOUNS = "Garden Harbour Atlas Lantern Orchard River Machine Letter Island Archive Winter House Kingdom Sparrow"
NOTES = "gripping slow grand charming twice-read unfinished"
YEARS = (2022, 2023, 2024)


class Lake:
    def __init__(self, folder: Path, rows: int) -> None:
        self.folder = folder
        self.random = np.random.default_rng(1974)
        self.readers, self.books = rows * 12 // 100, rows * 8 // 100
        self.authors, self.reviews = rows * 2 // 100, rows * 4 // 100
        self.bad = max(2, rows // 25_000)  # of each kind of dirt
        self.cards = np.char.add("R", np.char.zfill(np.arange(self.readers).astype(str), 7))
        self.codes = np.char.add("A", np.char.zfill(np.arange(self.authors).astype(str), 6))
        self.isbns = isbns(self.books)
        self.rows = rows

    def write(self) -> None:
        (self.folder / "loans").mkdir(parents=True)
        self.write_authors()
        wrote = self.write_books()
        self.write_readers()
        self.write_reviews()
        self.write_loans(self.rows - self.readers - self.books - self.authors - self.reviews - wrote)

    def write_authors(self) -> None:
        born = self.days("1890-01-01", "1996-01-01", self.authors)
        known = self.random.random(self.authors) < 0.9
        names = joined([self.pick(FIRST, self.authors), " ", self.pick(LAST, self.authors)])
        table = {"code": self.codes, "name": names, "born": pa.array(born, mask=~known)}
        pq.write_table(pa.table(table), self.folder / "authors.parquet")

    def write_books(self) -> int:
        """Books with the codes of their authors; how many codes there are."""
        n, draw = self.books, self.random
        pages = draw.normal(310, 110, n).clip(40, 1200).astype(np.int32)
        price = draw.gamma(6, 3, n).round(0) + 0.9
        dirty = self.places(n, 2)
        pages[dirty[0]] = 0
        genre = self.pick(GENRES, n, skewed=True)
        genre[dirty[1]] = "Cookery"
        count = draw.choice([1, 2, 3], n, p=[0.8, 0.16, 0.04])
        ends = np.concatenate([[0], np.cumsum(count)]).astype(np.int32)
        # Steps of different lengths, so that no book has the same author twice.
        first = (draw.random(n) ** 1.5 * self.authors).astype(int)
        place = np.arange(ends[-1]) - np.repeat(ends[:-1], count)
        writers = self.codes[(np.repeat(first, count) + place * 17) % self.authors]
        table = {
            "isbn": self.isbns,
            "title": self.titles(n),
            "authors": pa.ListArray.from_arrays(ends, pa.array(writers)),
            "genre": genre,
            "pages": pa.array(pages, mask=draw.random(n) < 0.03),
            "price": pa.array(price, mask=draw.random(n) < 0.05),
            "published": self.days("1950-01-01", "2024-06-01", n),
        }
        pq.write_table(pa.table(table), self.folder / "books.parquet")
        return int(ends[-1])

    def write_readers(self) -> None:
        n, draw = self.readers, self.random
        first, last = self.pick(FIRST, n), self.pick(LAST, n)
        email = joined([first, ".", last, np.arange(n).astype(str), "@example.org"])
        age = draw.normal(41, 17, n).clip(6, 97).astype(int).astype(str).astype(object)
        tier = self.pick(TIERS, n, skewed=True)
        since = self.days("2009-01-01", "2022-01-01", n).astype(str).astype(object)
        dirty = self.places(n, 5)
        age[dirty[0]] = draw.choice(["0", "205", "1984", "-7"], self.bad)
        tier[dirty[1]] = draw.choice(["gold", "PLUS", "unknown"], self.bad)
        since[dirty[2]] = draw.choice(["2019-02-30", "12/05/2018", "soon"], self.bad)
        email[dirty[3][1::2]] = email[dirty[3][: self.bad // 2 * 2 : 2]]  # two readers, one address
        table = pa.table(
            {
                "card": self.cards,
                "first_name": first,
                "last_name": last,
                "email": pa.array(email, mask=draw.random(n) < 0.04),
                "age": pa.array(age, mask=draw.random(n) < 0.06),
                "city": self.pick(CITIES, n),
                "tier": tier,
                "joined": since,
            }
        )
        # Exported twice: the same cards again at the end of the file.
        pc.write_csv(pa.concat_tables([table, table.take(dirty[4])]), self.folder / "readers.csv")

    def write_loans(self, n: int) -> None:
        draw = self.random
        day = np.sort(self.days(f"{YEARS[0]}-01-01", f"{YEARS[-1] + 1}-01-01", n))
        card = self.cards[draw.integers(0, self.readers, n)].astype(object)
        isbn = self.isbns[(draw.random(n) ** 2 * self.books).astype(int)].astype(object)  # few books are read by many
        kept_days = draw.gamma(3, 6, n).astype(int) + 1
        back = day + kept_days
        lent = day.astype(str).astype(object)
        returned = back.astype(str).astype(object)
        fine = np.where(kept_days > 28, (kept_days - 28) * 0.25, 0)
        dirty = self.places(n, 4)
        card[dirty[0]] = "R9999999"
        isbn[dirty[1]] = "9780000000002"
        lent[dirty[2]] = draw.choice(["2023-13-01", "yesterday", "31.04.2024"], self.bad)
        returned[dirty[3]] = (day[dirty[3]] - 30).astype(str)  # before it was lent: a rule sees it
        is_open = back >= np.datetime64(f"{YEARS[-1] + 1}-01-01")
        table = pa.table(
            {
                "card": card,
                "isbn": isbn,
                "lent": lent,
                "returned": pa.array(returned, mask=is_open),
                "fine": pa.array(fine, mask=(fine == 0) | is_open),
            }
        )
        year = day.astype("datetime64[Y]").astype(int) + 1970
        for each in YEARS:
            pc.write_csv(table.filter(pa.array(year == each)), self.folder / "loans" / f"{each}.csv")

    def write_reviews(self) -> None:
        n, draw = self.reviews, self.random
        card, isbn = self.cards[draw.integers(0, self.readers, n)], self.isbns[draw.integers(0, self.books, n)]
        stars, note = draw.choice(5, n, p=[0.05, 0.08, 0.2, 0.37, 0.3]) + 1, self.pick(NOTES, n)
        silent = draw.random(n) < 0.6
        lines: list[bytes] = []
        columns = [column.tolist() for column in (card, isbn, stars, note, silent)]
        for who, what, how_good, text, no_text in zip(*columns, strict=True):
            data: dict[str, Any] = {"stars": how_good} if no_text else {"stars": how_good, "note": text}
            lines.append(orjson.dumps({"edge": "Reviewed", "from": who, "to": what, "data": data}))
        cut, wordy = self.places(n, 2)
        for place in cut:
            lines[place] = lines[place][: len(lines[place]) // 2]
        for place in wordy:
            lines[place] = re.sub(rb'"stars":\d', b'"stars":"many"', lines[place])
        (self.folder / "reviews.jsonl").write_bytes(b"\n".join([*lines, b""]))

    def pick(self, words: str, n: int, skewed: bool = False) -> np.ndarray[Any, Any]:
        chosen = np.array(words.split(), object)
        weights = 1 / np.arange(1, len(chosen) + 1) if skewed else np.ones(len(chosen))
        return chosen[self.random.choice(len(chosen), n, p=weights / weights.sum())]

    def places(self, n: int, kinds: int) -> np.ndarray[Any, Any]:
        """Rows to spoil: for each kind of dirt as many, none twice."""
        return self.random.choice(n, (kinds, self.bad), replace=False)

    def days(self, first: str, end: str, n: int) -> np.ndarray[Any, Any]:
        start = np.datetime64(first)
        return start + self.random.integers(0, int((np.datetime64(end) - start).astype(int)), n)

    def titles(self, n: int) -> np.ndarray[Any, Any]:
        a, b, c = self.pick(ADJECTIVES, n), self.pick(NOUNS, n), self.pick(NOUNS, n)
        kinds = self.random.integers(0, 3, n)
        return np.select(
            [kinds == 0, kinds == 1],
            [joined(["The ", a, " ", b]), joined(["The ", b, " and the ", c])],
            joined(["A ", a, " ", b, " in ", self.pick(CITIES, n)]),
        )


def isbns(n: int) -> np.ndarray[Any, Any]:
    """Thirteen digits, the last of which checks the others."""
    body = 978_100_000_000 + np.arange(n, dtype=np.int64) * 37
    digits = body[:, None] // 10 ** np.arange(11, -1, -1) % 10
    check = -(digits * np.array([1, 3] * 6)).sum(axis=1) % 10
    return (body * 10 + check).astype(str)


def joined(parts: list[Any]) -> np.ndarray[Any, Any]:
    whole: Any = ""
    for part in parts:
        whole = whole + (part.astype(object) if isinstance(part, np.ndarray) else part)
    return whole


if __name__ == "__main__":
    Lake(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1_000_000).write()
