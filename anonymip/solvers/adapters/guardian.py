"""Run a program and do not let it outlive whoever asked for it.

Started as ``python -I -S guardian.py FOLDER PROGRAM ARGUMENTS...`` by an adapter that keeps the
pipe of its standard input open. When the pipe closes, since the parent ended in whatever way, the
program is killed and the folder with its files removed. Else its exit code is handed on. The
standard library only: it starts in a few hundredths of a second.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading


def main(folder: str, command: list[str]) -> int:
    """Run the command in the folder; return its exit code, or 128 and the signal that ended it."""
    # Interrupts reach the whole group: the program ends, and is waited for.
    signal.signal(signal.SIGINT, lambda *_: None)
    # What the program writes holds values of the table, as what it reads does.
    os.umask(0o077)
    process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL)

    alone = threading.Event()

    def watch() -> None:
        while os.read(0, 1):
            pass
        alone.set()
        process.kill()
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(1)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    code = process.wait()
    if alone.is_set():
        watcher.join()  # it clears up, and ends this process
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
