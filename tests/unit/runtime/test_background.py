"""Priority and pauses, seen in a process of its own."""

import subprocess
import sys

import pytest

from runtime import background

PROGRAM = """
import os, sys
sys.path.insert(0, ".")
from runtime import background
before = os.nice(0)
background.lower_priority()
background.lower_priority()
print(os.nice(0) - before)
"""


def test_the_priority_is_lowered_once():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(background.NICENESS)


def test_a_pause_lasts_as_long_as_told():
    begun = background.monotonic()
    background.pause(0.01)
    assert background.monotonic() - begun >= 0.01


def test_work_that_was_started_is_waited_for():
    done = []
    background.start(lambda: done.append(1))()
    assert done == [1]
    background.at_once(lambda: done.append(2))()
    assert done == [1, 2]


def test_what_started_work_raised_is_raised_where_it_is_waited_for():
    waits = background.start(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        waits()
