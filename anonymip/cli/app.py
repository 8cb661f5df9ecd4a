"""The application: its commands, and what becomes of errors.

Commands import what they need when they run, so that help and errors of usage wait for none of it:
the modules of the command line load neither NumPy nor what is built on it.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

import typer

from anonymip._version import __version__
from anonymip.cli import answers, experiments, hierarchies, inventory, tasks
from anonymip.cli.arguments import timed_by
from anonymip.cli.console import err, out, say, showing_records, showing_warnings
from anonymip.cli.options import an_option, spread
from anonymip.cli.tables import hide_passwords
from anonymip.errors import AnonymipError, InputError, Interrupted, fault_of, naming_options
from anonymip.runtime.budget import MachineClock
from anonymip.runtime.memory import is_scarce, memory_ended, ran_out

# The root of Typer's errors of usage, wherever it keeps its click.
_UsageProblem: Any = typer.BadParameter.__mro__[2]

app = typer.Typer(
    name="anonymip",
    help="k-anonymization as optimization: every release says how far from optimal it is.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _print_version(wanted: bool) -> None:
    if wanted:
        say(out, f"anonymip {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


@spread
def serve_page(
    port: int = an_option(0, "Default: one that is free.", min=0, max=65535),
    no_browser: bool = an_option(False, "Only print the address, and open nothing."),
) -> None:
    """Open a page that makes releases, in this machine's browser; nothing leaves the machine."""
    from anonymip.app.server import serve

    def tell(address: str) -> None:
        say(out, f"Open {address}\nThe address is a secret of yours. Ctrl-C ends the program.")

    serve(port, tell, opens=not no_browser)


#: The commands as help lists them.
_COMMANDS: dict[str, dict[str, Callable[..., None]]] = {
    "Releases": {
        "demo": tasks.demo,
        "anonymize": tasks.anonymize,
        "verify": tasks.verify,
        "risk": tasks.risk,
        "app": serve_page,
    },
    "Preparing a table": {"inspect": tasks.inspect, "hierarchy": hierarchies.hierarchy},
    "Losses, bounds and proofs": {
        "solve": answers.solve,
        "compare": experiments.compare,
        "experiment": experiments.experiment,
        "bound": answers.bound,
        "certify": answers.certify,
        "check-certificate": answers.check_certificate,
        "export": answers.export,
        "objective": inventory.objective,
    },
    "What there is": {
        "methods": inventory.methods,
        "solvers": inventory.solvers,
        "instances": inventory.instances,
        "fetch": inventory.fetch,
        "leaderboard": inventory.leaderboard,
        "versions": inventory.versions,
        "warm-up": inventory.warm_up,
    },
}
for _panel, _commands in _COMMANDS.items():
    for _name, _command in _commands.items():
        app.command(_name, rich_help_panel=_panel)(_command)


@cache
def _built() -> Any:
    """Return the commands and their options, which take longer to build than some to run."""
    return typer.main.get_command(app)


def run(
    arguments: list[str] | None = None, clock: MachineClock | None = None, command: Any = None
) -> int:
    """Run one command and return its exit code.

    `arguments`: default: those of the process. `clock`: since the command began, from where its
    time limit counts; default: now. `command`: as Typer builds it; default: all of ``anonymip``.
    Returns: 0 done, 1 verification failed, 2 bad input, 3 no solution in the limits, 4 internal
    error, 130 interrupted with nothing to show.
    """
    arguments = hide_passwords(sys.argv[1:] if arguments is None else arguments)
    try:
        with (
            naming_options(),
            timed_by(clock or MachineClock()),
            showing_warnings(),
            showing_records(),
        ):
            code = (command or _built())(arguments, standalone_mode=False)
    except _UsageProblem as error:
        error.show()
        return int(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        code = Interrupted.exit_code
    except SystemExit as end:
        # Typer and Rich make this of a broken pipe: the reader of our output has gone.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except AnonymipError as error:
        say(err, f"error: {error.render(show_values='--show-values' in arguments)}")
        return error.exit_code
    except (MemoryError, OSError, RuntimeError, ImportError) as error:
        return _failed(error, arguments)
    except Exception as error:  # noqa: BLE001
        return _internal(error, arguments)
    # Some versions of Typer raise at Ctrl-C, others only return this code.
    if code == Interrupted.exit_code:
        err.print("interrupted")
    return code if isinstance(code, int) else 0


def _failed(error: Exception, arguments: list[str]) -> int:
    """Report what memory, terminal or pipe have to do with; return the exit code."""
    # A library that cannot be loaded into what is left says anything.
    if ran_out(error) or (isinstance(error, (ImportError, OSError)) and is_scarce()):
        if os.environ.get("ANONYMIP_TRACEBACK"):
            traceback.print_exception(error)
        short = memory_ended("while the command worked")
        err.print(f"error: {short}", markup=False, highlight=False, soft_wrap=True)
        return short.exit_code
    # Outputs of ours name their file; without one it is the terminal or pipe behind us.
    if isinstance(error, OSError) and error.filename is None and error.errno is not None:
        told = os.strerror(error.errno)
        err.print(f"error: the output cannot be written: {told}", markup=False)
        return InputError.exit_code
    return _internal(error, arguments)


def _internal(error: Exception, arguments: list[str]) -> int:
    """Report what is a fault of the program, and said to be one; return the exit code."""
    if os.environ.get("ANONYMIP_TRACEBACK"):
        traceback.print_exception(error)
    what = f"{fault_of(error)}: {error}" if "--show-values" in arguments else fault_of(error)
    told = "Please report it; ANONYMIP_TRACEBACK=1 shows the whole traceback."
    say(err, f"internal error: {what}\n{told}")
    return AnonymipError.exit_code
