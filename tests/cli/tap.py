# SPDX-License-Identifier: MIT
"""TAP: functions that keep promises, or checks told as they are made."""
import signal

# A shell that starts the tests in the background has these ignored, and all
# that they start would inherit it.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)

_told = 0
_failed = 0


class Skip(Exception):
    """Raised by a test that cannot be made here, with the reason."""


def _tell(truth, name):
    global _told, _failed
    _told += 1
    _failed += not truth
    print(f"{'ok' if truth else 'not ok'} {_told} - {name}", flush=True)


def promises(functions):
    """(name, function) of each test_* in a script's globals()."""
    return [(name[5:].replace("_", " "), function)
            for name, function in functions.items()
            if name.startswith("test_")]


def run(tests):
    """Call each (name, function).  Returns the exit status."""
    print(f"1..{len(tests)}")
    for name, test in tests:
        try:
            test()
            _tell(True, name)
        except Skip as reason:
            skip(name, reason)
        except Exception as problem:  # a test that dies has failed
            for line in str(problem).splitlines() or [""]:
                print(f"# {type(problem).__name__}: {line[:600]}")
            _tell(False, name)
    return 1 if _failed else 0


def check(name, truth, why=""):
    _tell(truth, name)
    if not truth:
        print(f"# {str(why)[:2000]}")


def skip(name, why="no corpus"):
    _tell(True, f"{name} # SKIP {why}")


def end():
    """After the last check().  Returns the exit status."""
    print(f"1..{_told}")
    return 1 if _failed else 0
