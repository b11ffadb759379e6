"""What scipy alone would import is imported when it is used, and is then what it is."""

import subprocess
import sys

import pytest

from dpbench.later import UNUSED


@pytest.mark.parametrize("used", ["numpy.testing.assert_allclose(1, 1)", "numpy.f2py.get_include()"])
def test_it_is_imported_when_it_is_used(used):
    code = f"""
import sys
import dpbench.data
import scipy.special, pandas, numpy
before = len([name for name in sys.modules if name.startswith({UNUSED!r})])
{used}
print(before, len([name for name in sys.modules if name.startswith({UNUSED!r})]) > before)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"{len(UNUSED)} True\n"
