"""Where the program begins: loads the command line, and is quiet about Ctrl-C from the first moment on.

Most of the tenth of a second until a command is known goes into loading; whoever interrupts that must not be shown
where we were.
"""

INTERRUPTED = 130


def main() -> None:
    try:
        from trainmaster.cli.main import main as run

        run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
