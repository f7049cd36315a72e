"""The `memory-os` command. Each sub-command imports what it needs, so that `--help` is quick."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID

import typer

from memory_os.errors import StartupError

cli = typer.Typer(
    name="memory-os",
    help="Long-term memory for teams of AI agents.\n\nExample: memory-os up",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
HOME = typer.Option(help="The folder of `memory-os up`, running or not; default: the database of the settings.")


@cli.command()
def up(
    home: Annotated[Path, typer.Option(help="Where stores, logs and tokens are kept.")] = Path(".memory-os"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of API and console; 0 takes a free one.")] = 8080,
    graph: Annotated[Literal["falkor", "networkx"], typer.Option(help="Graph backend.")] = "falkor",
    workers: Annotated[int, typer.Option(min=1, max=16, help="Worker processes.")] = 1,
    ready_file: Annotated[
        Path | None, typer.Option(help="JSON with addresses and tokens, written when all answers.")
    ] = None,
) -> None:
    """Run everything on this machine: Postgres, FalkorDB, API, console and workers. Ctrl-C stops it all.

    Example: memory-os up --port 8080 --workers 2
    """
    from memory_os.embedded.options import StackOptions
    from memory_os.embedded.stack import run_stack
    from memory_os.embedded.steps import stack_steps

    run_stack(StackOptions(home, port, graph, workers, ready_file), stack_steps())


@cli.command()
def migrate(
    revision: Annotated[str, typer.Option(help="Alembic revision to bring the schema to.")] = "head",
) -> None:
    """Make the roles and bring the schema to the newest revision, with OWNER_DATABASE_URL or DATABASE_URL.

    Example: OWNER_DATABASE_URL=postgresql://postgres@db/memory memory-os migrate
    """
    from memory_os.settings import load_settings
    from memory_os.storage.migrate import upgrade
    from memory_os.storage.revision import SCHEMA_REVISION

    upgrade(load_settings().owner_url(), revision)
    typer.echo(f"the schema is at {SCHEMA_REVISION if revision == 'head' else revision}")


@cli.command()
def api(
    host: Annotated[str | None, typer.Option(help="Address to listen on; default HOST.")] = None,
    port: Annotated[int | None, typer.Option(min=0, max=65535, help="Port to listen on; default PORT.")] = None,
    with_worker: Annotated[
        bool, typer.Option(help="Project in this process too (needed by GRAPH_BACKEND=networkx).")
    ] = False,
) -> None:
    """Serve the REST API and the console.

    Example: DATABASE_URL=postgresql://memory_os_app@db/memory memory-os api --port 8080
    """
    from memory_os.serving import serve
    from memory_os.settings import load_settings

    serve(load_settings(), host=host, port=port, with_worker=with_worker)


@cli.command()
def worker() -> None:
    """Project outbox events into the graph until SIGTERM.

    Example: DATABASE_URL=postgresql://memory_os_worker@db/memory ENABLE_GRAPH_MEMORY=true memory-os worker
    """
    from memory_os.settings import load_settings
    from memory_os_workers.process import run_worker

    run_worker(load_settings())


@cli.command()
def config() -> None:
    """Print the settings in force, secrets hidden.

    Example: memory-os config
    """
    from memory_os.settings import load_settings

    for name, value in load_settings().model_dump().items():
        typer.echo(f"{name.upper()}={value}")


@cli.command()
def doctor() -> None:
    """Examine roles, schema, row-level security, embedder and graph; exit code 1 if something is wrong.

    Example: memory-os doctor
    """
    import asyncio

    from memory_os.doctor import examine
    from memory_os.settings import load_settings

    findings = asyncio.run(examine(load_settings()))
    for what, fault in findings:
        typer.echo(f"{'ok  ' if fault is None else 'BAD '} {what}{'' if fault is None else ': ' + fault}")
    sys.exit(1 if any(fault for _, fault in findings) else 0)


@cli.command()
def reembed() -> None:
    """Make the embedder of the settings the current one; workers then make all vectors anew.

    Example: EMBEDDING_PROVIDER=http EMBEDDING_URL=http://127.0.0.1:9000/v1 EMBEDDING_MODEL=e5 memory-os reembed
    """
    import asyncio

    from memory_os.app import build_embedder
    from memory_os.memories.reembedding import reembed as run
    from memory_os.settings import load_settings
    from memory_os.storage.database import Database

    async def go() -> int:
        settings = load_settings()
        embedder, database = build_embedder(settings), Database(settings.worker_url(), pool_size=1)
        try:
            return await run(database, await embedder.open(), typer.echo)
        finally:
            await embedder.close()
            await database.close()

    typer.echo(f"{asyncio.run(go())} memories wait for the workers")


@cli.command()
def cycle(
    name: Annotated[Literal["nightly", "weekly", "monthly"], typer.Argument(help="Which cycle.")],
    tenant: Annotated[str, typer.Option(help="Name or id of the tenant.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Do nothing; tell what would be done.")] = False,
    moment: Annotated[
        str | None, typer.Option(help="What everything is reckoned from, ISO 8601 with an offset; default now.")
    ] = None,
) -> None:
    """Make a run of a cycle in this process, with WORKER_DATABASE_URL, and print what it did by rule.

    Example: memory-os cycle nightly --tenant "Team North" --dry-run
    """
    from memory_os.cycles.commands import make_run
    from memory_os.settings import load_settings

    sys.exit(make_run(load_settings(), name, tenant, dry_run=dry_run, moment=moment, tell=typer.echo))


@cli.command("export")
def export_tenant(
    tenant: Annotated[UUID, typer.Option(help="Whose records.")],
    to: Annotated[Path, typer.Option(help="File to write; - is standard output.")],
    home: Annotated[Path | None, HOME] = None,
) -> None:
    """Write all that is durable of a tenant as lines of JSON, without vectors, with OWNER_DATABASE_URL.

    Example: memory-os export --tenant 0190d6f2-8c1f-7cc3-98c4-dc0c0c07398f --to north.jsonl
    """
    from memory_os.settings import load_settings
    from memory_os.transfer import commands

    with commands.database_url(home, lambda: load_settings().owner_url()) as url:
        _tell(commands.export_tenant(url, tenant, to))


@cli.command("import")
def import_tenant(
    tenant: Annotated[UUID, typer.Option(help="The tenant that gets the records; it has to be there.")],
    source: Annotated[Path, typer.Option("--from", help="File that an export has written; - is standard input.")],
    home: Annotated[Path | None, HOME] = None,
) -> None:
    """Read an export into a tenant: all of it or, with one line that names the fault, nothing.

    Example: memory-os import --tenant 0190d6f2-8c1f-7cc3-98c4-dc0c0c07398f --from north.jsonl
    """
    from memory_os.app import build_embedder
    from memory_os.outbox.events import Outbox
    from memory_os.settings import load_settings
    from memory_os.transfer import commands

    settings = load_settings()
    outbox = Outbox(enabled=settings.enable_graph_memory or home is not None)  # a home has a graph
    with commands.database_url(home, settings.owner_url) as url:
        _tell(commands.import_tenant(url, tenant, source, build_embedder(settings), outbox))


@cli.command()
def backup(
    to: Annotated[Path, typer.Option(help="File to write.")],
    home: Annotated[Path | None, HOME] = None,
) -> None:
    """Dump the whole database while writes go on, with OWNER_DATABASE_URL. The graph is not in it: it is derived.

    Example: memory-os backup --to memory_os.dump --home .memory-os
    """
    from memory_os.backup.dumping import back_up
    from memory_os.settings import load_settings
    from memory_os.transfer.commands import database_url

    with database_url(home, lambda: load_settings().owner_url()) as url:
        service = load_settings().database_url if home is None else None
        _tell(back_up(url, to, service.get_secret_value() if service else None))


@cli.command()
def restore(
    source: Annotated[Path, typer.Option("--from", help="File that a backup has written.")],
    home: Annotated[Path | None, typer.Option(help="Empty or new folder for `memory-os up`.")] = None,
    url: Annotated[str | None, typer.Option(help="Empty database of a server of yours, as a superuser.")] = None,
) -> None:
    """Restore a backup into an empty home or an empty database, and bring its schema up to date.

    Example: memory-os restore --from memory_os.dump --home restored
    """
    from memory_os.backup.restoring import restore_home, restore_url

    if home is not None and url is None:
        _tell(restore_home(home, source))
    elif url is not None and home is None:
        _tell(restore_url(url, source))
    else:
        raise StartupError("name either --home or --url: where the backup is restored to")


def _tell(lines: list[str]) -> None:
    """Print on standard error: standard output may be the file."""
    for line in lines:
        typer.echo(line, err=True)


token_cli = typer.Typer(help="Tokens of the instance itself.", no_args_is_help=True)
tenant_cli = typer.Typer(help="Tenants.", no_args_is_help=True)
cli.add_typer(token_cli, name="token")
cli.add_typer(tenant_cli, name="tenant")
graph_cli = typer.Typer(help="Compare, mend and rebuild graphs.", no_args_is_help=True)
cli.add_typer(graph_cli, name="graph")
TENANT = typer.Option(help="Only this tenant's graph; default: all.")
erase_cli = typer.Typer(help="Erasures.", no_args_is_help=True)
cli.add_typer(erase_cli, name="erase")


@token_cli.command("create-root")
def create_root(name: Annotated[str, typer.Option(help="What the token is called.")] = "command line") -> None:
    """Make a token of role root with OWNER_DATABASE_URL; it is shown once.

    Example: memory-os token create-root --name ops
    """
    from memory_os.admin.commands import create_root_token
    from memory_os.settings import load_settings

    for line in create_root_token(load_settings().owner_url(), name):
        typer.echo(line)


@tenant_cli.command("create")
def create_tenant(
    name: Annotated[str, typer.Argument(help="Name of the tenant.")],
    time_zone: Annotated[str, typer.Option(help="IANA time zone.")] = "UTC",
) -> None:
    """Make a tenant and its first admin token with OWNER_DATABASE_URL; the token is shown once.

    Example: memory-os tenant create "Team North" --time-zone Europe/Berlin
    """
    from memory_os.admin import commands
    from memory_os.settings import load_settings

    for line in commands.create_tenant(load_settings().owner_url(), name, time_zone):
        typer.echo(line)


@graph_cli.command("verify")
def verify_graph(tenant: Annotated[UUID | None, TENANT] = None) -> None:
    """Compare graphs with their canonical rows, while writes go on; exit code 1 if anything differs.

    Example: memory-os graph verify --tenant 0190d6f2-8c1f-7cc3-98c4-dc0c0c07398f
    """
    import asyncio

    from memory_os.settings import load_settings
    from memory_os_workers.commands import compare

    sys.exit(asyncio.run(compare(load_settings(), tenant, repair=False)))


@graph_cli.command("repair")
def repair_graph(
    tenant: Annotated[UUID | None, TENANT] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Change the graph; without it only tell what differs.")
    ] = False,
) -> None:
    """Set what differs right and touch nothing else; without --apply nothing is changed.

    Example: memory-os graph repair --tenant 0190d6f2-8c1f-7cc3-98c4-dc0c0c07398f --apply
    """
    import asyncio

    from memory_os.settings import load_settings
    from memory_os_workers.commands import compare

    code = asyncio.run(compare(load_settings(), tenant, repair=apply))
    if code and not apply:
        typer.echo("nothing was changed: repeat with --apply to mend it", err=True)
    sys.exit(code)


@graph_cli.command("rebuild")
def rebuild_graph(
    tenant: Annotated[UUID, typer.Option(help="Whose graph.")],
    user: Annotated[str | None, typer.Option(help="Project only this user's memories again, in place.")] = None,
    follow: Annotated[bool, typer.Option(help="Wait for it, with its progress.")] = True,
) -> None:
    """Ask the workers to make a graph anew from the canonical rows; readers keep the old one until the new is whole.

    Example: memory-os graph rebuild --tenant 0190d6f2-8c1f-7cc3-98c4-dc0c0c07398f
    """
    import asyncio

    from memory_os.settings import load_settings
    from memory_os_workers.commands import rebuild

    sys.exit(asyncio.run(rebuild(load_settings(), tenant, user, follow=follow)))


@erase_cli.command("verify")
def verify_erasure(
    receipt: Annotated[UUID, typer.Option(help="Id of the receipt that the erasure gave.")],
    tenant: Annotated[UUID | None, typer.Option(help="Whose it is; default: found by the receipt.")] = None,
    text: Annotated[
        str | None, typer.Option(help="A text that must be nowhere, or - to read it from standard input.")
    ] = None,
) -> None:
    """Search every table and the graph for what was erased, with OWNER_DATABASE_URL; exit code 1 if anything is left.

    Example: memory-os erase verify --receipt 0190d6f2-8c1f-7cc3-98c4-dc0c0c07398f --text - < sentence.txt
    """
    from memory_os.app import build_graph
    from memory_os.erasure import commands
    from memory_os.settings import load_settings

    settings = load_settings()
    graph = build_graph(settings)
    if graph is not None and settings.graph_backend == "networkx":
        raise StartupError(
            "GRAPH_BACKEND=networkx lives in the API's process: stop that, and repeat this with "
            "ENABLE_GRAPH_MEMORY=false for the tables; then search the files of GRAPH_DIR"
        )
    backend = None if graph is None else graph.backend
    sys.exit(commands.verify(settings.owner_url(), backend, receipt, tenant, text, typer.echo))


def main() -> None:
    """Entry point: a refusal is one line on standard error and exit code 2."""
    try:
        cli()
    except StartupError as error:
        typer.echo(f"memory-os: {error}", err=True)
        sys.exit(2)
