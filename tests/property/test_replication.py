"""Registries that replicate each other become equal, for any topology, history, cuts and delays."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.property.simulated_registries import Link, SimulatedRegistry, reachable

from stele.replicate.plan import RegistryComparison, make_plan

REGISTRIES = 3
_pairs = st.tuples(st.integers(0, REGISTRIES - 1), st.integers(0, REGISTRIES - 1)).filter(
    lambda pair: pair[0] != pair[1]
)
_topologies = st.lists(_pairs, min_size=2, max_size=6, unique=True)
_names = st.sampled_from(("x", "x", "y"))
_users = st.tuples(
    st.sampled_from(("register", "register", "soft_delete", "purge", "end")), st.integers(0, REGISTRIES - 1), _names
)
_network = st.tuples(
    st.sampled_from(("sync", "sync", "look", "look_at", "arrive", "lose", "cut", "mend")), st.integers(0, 5), _names
)
_histories = st.lists(st.one_of(_users, _network), max_size=60)


class World:
    """Registries and the links between them.

    Attributes:
        shared: Whether subjects of all registries have the same names, so that they conflict.
    """

    def __init__(self, topology: list[tuple[int, int]], *, shared: bool) -> None:
        self.registries = [SimulatedRegistry(f"r{number}") for number in range(REGISTRIES)]
        self.links = [Link(self.registries[source], self.registries[target]) for source, target in topology]
        self.shared = shared

    def run(self, history: list[tuple[str, int, str]]) -> None:
        """Execute the steps of a history in order."""
        for word, number, name in history:
            if word in {"register", "soft_delete", "purge", "end"}:
                getattr(self.registries[number], word)(name if self.shared else f"{name}{number}")
                continue
            link = self.links[number % len(self.links)]
            subject = name if self.shared else f"{name}{self.registries.index(link.source)}"
            match word:
                case "cut" | "mend":
                    link.is_cut = word == "cut"
                case "look_at":
                    link.look(subject)
                case _:
                    getattr(link, word)()

    def come_to_rest(self) -> None:
        """Restore all links, apply all plans, and synchronize until no registry changes."""
        for link in self.links:
            link.is_cut = False
            while link.under_way:
                link.arrive()
        for _ in range(3 * REGISTRIES + 3):
            outcomes = [link.replicator.synchronize() for link in self.links]
            if not any(row.registered or row.removed for row in outcomes):
                return
        raise AssertionError("they do not come to rest")


@settings(max_examples=400, deadline=None)
@given(_topologies, _histories)
@example([(0, 1), (1, 2)], [("register", 0, "x"), ("sync", 0, "x"), ("sync", 1, "x"), ("purge", 0, "x")])
@example([(1, 0), (0, 1)], [("register", 0, "x"), ("sync", 1, "x"), ("purge", 0, "x"), ("look", 0, "x")])
@example(
    [(0, 1), (1, 2), (0, 2)],
    [
        ("register", 0, "x"),
        ("sync", 0, "x"),
        ("look", 1, "x"),
        ("purge", 0, "x"),
        ("register", 0, "x"),
        ("sync", 2, "x"),
    ],
)
def test_every_topology_converges(topology: list[tuple[int, int]], history: list[tuple[str, int, str]]) -> None:
    """Each registry has what every registry that leads to it has, in the same state: nothing twice, nothing lost."""
    world = World(topology, shared=False)
    world.run(history)
    before = [row.own() for row in world.registries]
    world.come_to_rest()
    assert [row.own() for row in world.registries] == before
    for source in world.registries:
        for target in reachable(world.links, source):
            assert target.of(source.authority) == source.own()
    for registry in world.registries:
        assert len(set(registry.registrations)) == len(registry.registrations)


@settings(max_examples=200, deadline=None)
@given(_topologies, _histories)
def test_conflicts_leave_everybody_alone(topology: list[tuple[int, int]], history: list[tuple[str, int, str]]) -> None:
    """With the same names everywhere, no registry loses or gains own versions, nor mixes subjects."""
    world = World(topology, shared=True)
    world.run(history)
    before = [row.own() for row in world.registries]
    world.come_to_rest()
    assert [row.own() for row in world.registries] == before
    for registry in world.registries:
        authorities: dict[Any, set[str]] = {}
        for row in registry.list_versions():
            authorities.setdefault(row.place, set()).add(row.authority)
        assert all(len(owners) == 1 for owners in authorities.values())


@settings(max_examples=100, deadline=None)
@given(_histories)
def test_a_plan_that_was_carried_out_leaves_nothing_to_do(history: list[tuple[str, int, str]]) -> None:
    """A comparison after applying a plan finds no difference."""
    world = World([(0, 1)], shared=False)
    world.run(history)
    world.come_to_rest()
    source, target = world.registries[0], world.registries[1]
    there = {row.uid: row for row in target.list_versions()}
    plan = make_plan(RegistryComparison(source.list_versions(), there, source.authority, target.authority))
    assert plan.is_empty
    assert plan.conflicts == ()
