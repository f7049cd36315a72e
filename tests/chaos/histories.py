"""A short history of one tenant with something of everything: creations, changes, deletions, edges, a declaration."""

from __future__ import annotations

from typing import Any

from tests.chaos.observing import Observer
from tests.chaos.writing import LABEL, Written


class History:
    """A tenant's history in three parts, written through the API, with what must be there after each.

    Args:
        seen: The tenant, which has nothing yet.
    """

    def __init__(self, seen: Observer) -> None:
        self.seen = seen
        self.written = Written()
        self.memories: list[str] = []
        self.deleted = self.archived = self.edge = ""

    def begin(self) -> None:
        """Store what the graph shall have before anything happens to a worker."""
        self.memories = [
            self.store("Ann Miller", "Bob Stone"),
            self.store("Ann Miller", "Carl Berg"),
            self.store("Bob Stone", "Carl Berg"),
            self.store("Dora Lind"),
            self.store("Ann Miller", "Bob Stone", "Dora Lind"),
            self.store("Emil Novak"),
        ]
        first, second, *_, fifth, sixth = self.memories
        self.tie("SUPPORTS", second, first)
        self.edge = self.tie("SUPPORTS", sixth, fifth)

    def go_on(self) -> None:
        """Create four; change, delete and archive in the batch after; then edges and a declared entity."""
        first, second, third, fourth, fifth, _ = self.memories
        created = [self.store("Ann Miller", name) for name in ("Fay Ortiz", "Gus Hale", "Ida Quist", "Bob Stone")]
        self.change(first, "Dora Lind", "Emil Novak")
        self.delete(second)
        self.archive(third)
        self.change(fourth, "Ann Miller", "Carl Berg")
        self.untie(self.edge)
        self.edge = self.tie("PART_OF", fourth, fifth)
        self.declare("Bob Stone")
        self.memories += created

    def go_on_while_nobody_works(self) -> None:
        """Change again what was in the dead worker's hands, and delete what it may have made."""
        created = self.memories[-4]
        self.change(self.memories[0], "Ann Miller", "Jon Vance")
        self.delete(created)
        self.memories.append(self.store("Kay Ruiz", "Bob Stone"))

    def store(self, *names: str) -> str:
        """Store a memory that names these."""
        text = self._text(*names)
        answer = self._ask("POST", "/v1/memories", {"text": text, "label": LABEL})
        ident = str(answer["memory"]["id"])
        self._keep(ident, text, *names)
        return ident

    def change(self, ident: str, *names: str) -> None:
        """Have a memory name others."""
        text = self._text(*names)
        self._ask("PATCH", f"/v1/memories/{ident}", {"text": text})
        self._keep(ident, text, *names)

    def delete(self, ident: str) -> None:
        """Delete a memory."""
        self._ask("DELETE", f"/v1/memories/{ident}")
        del self.written.texts[ident], self.written.names[ident]
        self.deleted = ident

    def archive(self, ident: str) -> None:
        """Archive a memory, which the graph keeps."""
        self._ask("PATCH", f"/v1/memories/{ident}", {"status": "archived"})
        self.archived = ident

    def tie(self, edge_type: str, source: str, target: str) -> str:
        """Store an edge between two memories."""
        body = {"type": edge_type, "from": {"memory": source}, "to": {"memory": target}}
        self.written.edges.add((source, target))
        return str(self._ask("POST", "/v1/edges", body)["edge"]["id"])

    def untie(self, ident: str) -> None:
        """Delete an edge."""
        edge = self._ask("GET", f"/v1/edges/{ident}")
        self._ask("DELETE", f"/v1/edges/{ident}")
        self.written.edges.remove((edge["from"]["memory"], edge["to"]["memory"]))

    def declare(self, name: str) -> None:
        """Declare an entity that memories may name already."""
        self._ask("POST", "/v1/memory/entities", {"name": name, "entity_type": "person"})
        self.written.declared.add(name)

    def _text(self, *names: str) -> str:
        return f"we saw {' with '.join(names)} at the harbour."

    def _keep(self, ident: str, text: str, *names: str) -> None:
        self.written.texts[ident], self.written.names[ident] = text, frozenset(names)

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        answer = self.seen.ask(method, path, body)
        assert answer.is_success, answer.text
        return answer.json()
