"""Source files named on the command line."""

from __future__ import annotations

from omnigraph.base.errors import BadRequest, NotFound


def read_source(path: str, what: str, option: str) -> str:
    """The text of a file as it lies there; `what` and `option` say in errors which file was meant."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        raise NotFound(f"{what} file '{path}' not found", f"Give another file with {option}.") from None
    except UnicodeDecodeError as error:
        raise BadRequest(f"{what} file '{path}' is not UTF-8 (byte {error.start})", "Save it as UTF-8.") from error
    except OSError as error:
        raise BadRequest(f"{what} file '{path}' cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BadRequest(f"{what} file {path!r} cannot be read: {error}") from error
