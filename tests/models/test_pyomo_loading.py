"""Pyomo is imported without the parts of SciPy that no model needs, and they stay usable."""

from __future__ import annotations

import subprocess
import sys


def printed(code: str) -> list[str]:
    """Return the words that some code prints in a process of its own."""
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True, check=True)
    return done.stdout.split()


def test_models_load_no_statistics() -> None:
    """Building a model imports neither SciPy's statistics nor, for integrals, its optimizers."""
    code = (
        "import sys, anonymip\n"
        "problem = anonymip.Problem(anonymip.load_instance('health-records'), 2)\n"
        "anonymip.build(problem, 'set-partition')\n"
        "wanted = ('pyomo.environ', 'scipy.stats', 'scipy.integrate', 'scipy.optimize')\n"
        "print(*(name in sys.modules for name in wanted))\n"
    )
    assert printed(code) == ["True", "False", "False", "False"]


def test_the_parts_are_there_for_whoever_asks() -> None:
    """Users and Pyomo itself find all of SciPy afterwards, as if nothing had stood in its place."""
    code = (
        "import anonymip.models.patterns.pattern\n"
        "from pyomo.common.dependencies import scipy as of_pyomo\n"
        "import scipy.integrate\n"
        "from scipy.stats import norm\n"
        "import scipy, sys\n"
        "print(scipy.stats is sys.modules['scipy.stats'] is of_pyomo.stats, norm.cdf(0.0))\n"
        "print(scipy.integrate is of_pyomo.integrate, scipy.integrate.quad(abs, 0, 1)[0])\n"
    )
    assert printed(code) == ["True", "0.5", "True", "0.5"]


def test_a_stand_in_gives_way_to_what_is_asked_of_it() -> None:
    """A thread that imports the statistics while Pyomo is being imported gets them."""
    code = (
        "import sys, scipy\n"
        "from anonymip.models.pyomo_loading import _StandIn\n"
        "sys.modules['scipy.stats'] = _StandIn('scipy.stats')\n"
        "from scipy.stats import norm\n"
        "print(norm.cdf(0.0), type(sys.modules['scipy.stats']).__name__)\n"
    )
    assert printed(code) == ["0.5", "module"]
