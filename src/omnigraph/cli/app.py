"""The tree of commands."""

from __future__ import annotations

import typer

from omnigraph.cli.command import epilog, root_options
from omnigraph.cli.commands import (
    analytics,
    branch,
    changes,
    cleanup,
    clone,
    commit,
    embed,
    export,
    infer,
    init,
    lint,
    load,
    lock,
    log,
    mutate,
    optimize,
    pipeline,
    query,
    recovery,
    repair,
    schema,
    snapshot,
    sql,
    status,
    tag,
    upkeep,
    verify,
    version,
)

_EXAMPLES = (
    "omnigraph init ./library --schema schema.pg",
    "omnigraph snapshot ./library",
    "omnigraph query -s ./library -e 'query all() { match { $p: Person } return { $p.name } }'",
    "omnigraph commit list --store ./library",
)


def _assembled() -> typer.Typer:
    app = typer.Typer(
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True, epilog=epilog(_EXAMPLES))(root_options)
    reading = (query, sql, analytics, snapshot, export, commit, log, changes, schema, lint, status)
    writing = (init, load, pipeline, infer, embed, mutate, branch, tag)
    keeping = (recovery, lock, optimize, verify, repair, cleanup, upkeep, clone)
    for family in (*writing, *reading, *keeping, version):
        family.add_to(app)
    return app


app = _assembled()
