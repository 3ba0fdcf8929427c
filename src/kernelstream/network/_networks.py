"""Networks of agents that learn together: consensus by penalty, proximity by multipliers.

Equation numbers are those of A. Koppel, A. S. Bedi, K. Rajawat, B. M. Sadler (2020), Section III:
see :class:`ConsensusNetwork`.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Annotated, Any

from kernelstream.network._base import _Network
from kernelstream.network._coupling import Coupling, as_constraint
from kernelstream.network._graph import by_edge, per_edge
from kernelstream.network._messages import Name
from kernelstream.parameters import Instance, Nothing, Number
from kernelstream.registry import Method, register

#: A number for all edges, or for each of them.
_BY_EDGE = Instance(
    Real, Mapping, str,
    words="a number, a dict of edge to number, or the name of an attribute of the edges",
    kind="float, dict of edge to float, or str",
)  # fmt: skip


class ConsensusNetwork(_Network):
    """Agents that learn one function from streams of their own, by a penalty.

    See Also
    --------
    ProximityNetwork : agents whose functions are related, not equal.

    Notes
    -----
    In a round agent i with samples x sends them to its neighbours j, which answer f_j(x), all as
    they were when the round began [1]_. Then

        f_i <- (1 - eta alpha) f_i - eta mean_x [l'(f_i(x), y) + c sum_j (f_i(x) - f_j(x))] k(x, .)

    (17), followed by kernel orthogonal matching pursuit, each agent on its own. The pull is a
    gradient step on a quadratic of curvature c degree k(x, x), and neighbours move towards one
    another at the same time: what two of them differ by is multiplied by
    1 - 2 eta c degree k(x, x) - eta l'' k(x, x) - eta alpha. So the step as printed in [1]_,
    ``coupling="explicit"``, needs eta0 (2 c degree k(x, x) + L k(x, x) + alpha) < 2 (with
    ``two_way`` 4 c), where L bounds l'', and is refused beyond (``"printed"`` takes it in any
    case). ``"normalised"`` divides the pull by 1 + 2 eta c degree k(x, x): f_i(x) moves a share
    below 1/2 of its way to its neighbours' mean, and any c is stable where eta0 (L k(x, x) +
    alpha) <= 1. It is (17) with the penalty c / (1 + 2 eta c degree k(x, x)), which larger c
    bring up to 1 / (2 eta degree k(x, x)).

    With penalty 0 agents are POLK: bit for bit where a round has two samples or more, up to
    rounding where it has one, for which POLK has a step of its own.

    Examples
    --------
    >>> import networkx as nx
    >>> from kernelstream import make_multidist
    >>> from kernelstream.network import ConsensusNetwork
    >>> X, y, X_test, y_test = make_multidist(4000, n_test=1000, random_state=1)
    >>> network = ConsensusNetwork(nx.cycle_graph(4), penalty=0.2, gamma=0.8, eta0=2.0)
    >>> network = network.run((X, y), batch=4)  # one stream, dealt to four agents
    >>> bool((network.predict(X_test) == y_test).mean() > 0.95)
    True
    >>> int(network.trace_["messages"].iloc[-1])  # 250 rounds, 4 agents, 2 neighbours, both ways
    4000
    """

    penalty: Annotated[
        Any,
        _BY_EDGE,
        "c of (17), how strongly neighbours pull. 0: agents alone.",
        "A number per edge, or the name of an attribute of the graph's edges.",
    ] = 1.0

    def __init__(self, graph: Any, **parameters: Any) -> None:
        super().__init__(graph, **parameters)

    def _coupling_of(self, name: Name) -> Coupling:
        return Coupling(
            "consensus",
            penalty=per_edge(self.graph, "penalty", self.penalty, name),
            normalised=self.coupling == "normalised",
            limited=self.coupling != "printed",
            two_way=self.two_way,
        )

    def _recall(self, couplings: Mapping[Name, Coupling]) -> None:
        self.penalty = by_edge({name: c.penalty for name, c in couplings.items()})


class ProximityNetwork(_Network):
    """Agents that learn related functions, each close to its neighbours' ones.

    See Also
    --------
    ConsensusNetwork : agents that learn one function.

    Notes
    -----
    The penalty of :class:`ConsensusNetwork` becomes a multiplier per neighbour that moves on its
    own [1]_, with h_ij = |f_i(x) - f_j(x)|^2, summed over outputs, the mean over the round:

        f_i <- (1 - eta alpha) f_i - eta mean_x [l' + sum_j mu_ij h'_ij] k(x, .)          (19)
        mu_ij <- max(0, (1 - delta eta^2) mu_ij + eta (h_ij - gamma_ij))                 (20)

    Where the agents differ by more than the tolerance the multiplier grows until they do not. It
    has no bound known in advance, so the pull is normalised; with ``coupling="explicit"`` a pull
    that could overshoot, beyond 1 / (2 eta k(x, x)), is cut there, and that is (19) no longer.
    ``coupling="printed"`` is (19) whatever comes of it. As (19) is printed no multiplier has to be
    sent; [1]_ says one must, and with ``two_way=True``, the whole gradient of the
    Lagrangian, it is.

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> from kernelstream.network import ProximityNetwork
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(-2.0, 2.0, (3, 500, 1))
    >>> y = [np.sin(2.0 * X[i, :, 0]) + 0.3 * i for i in range(3)]  # shifted curves
    >>> network = ProximityNetwork(
    ...     nx.path_graph(3), loss="squared_error", tolerance=0.05, eta0=0.5
    ... )
    >>> network = network.run([(X[i], y[i]) for i in range(3)])
    >>> bool(network.trace_["disagreement"].iloc[-100:].mean() < 0.1)
    True
    """

    tolerance: Annotated[
        Any,
        _BY_EDGE,
        "gamma_ij of (18): how large the mean of |f_i(x_i) - f_j(x_i)|^2 may be.",
        "A number per edge, or the name of an attribute of the graph's edges.",
    ] = 0.1
    constraint: Annotated[
        Any,
        Instance(tuple, words="a pair of functions", kind="pair of functions"),
        Nothing(),
        "h_ij of (18) of your own, and its derivative in f_i; by default |f_i - f_j|^2.",
        """``h(own, other)`` gets the values of an agent and of its neighbour at n samples, each
        (n, outputs), and returns n numbers; the derivative (n, outputs). For
        ``coupling="printed"``, without ``two_way``. Files do not hold functions:
        ``load(path, constraint=...)`` is given them again. Ray pickles them.""",
    ] = None
    dual_regularisation: Annotated[
        float,
        Number(least=0.0),
        "delta of (20): lets multipliers fade.",
        "Must satisfy dual_regularisation * eta0**2 < 1.",
    ] = 0.01

    def __init__(self, graph: Any, **parameters: Any) -> None:
        super().__init__(graph, **parameters)

    def _coupling_of(self, name: Name) -> Coupling:
        return Coupling(
            "proximity",
            tolerance=per_edge(self.graph, "tolerance", self.tolerance, name),
            dual_regularisation=self.dual_regularisation,
            constraint=as_constraint(self.constraint),
            normalised=self.coupling == "normalised",
            limited=self.coupling != "printed",
            two_way=self.two_way,
        )

    def _recall(self, couplings: Mapping[Name, Coupling]) -> None:
        self.tolerance = by_edge({name: c.tolerance for name, c in couplings.items()})
        first = next(iter(couplings.values()))
        self.dual_regularisation, self.constraint = first.dual_regularisation, first.constraint


register(
    Method(
        name="networks",
        title="networks",
        description="agents with streams of their own that learn together by answering one "
        "another's samples",
        paper="Koppel et al., IEEE SPM 2020, Section III",
        names=("network.ConsensusNetwork", "network.ProximityNetwork"),
    )
)
