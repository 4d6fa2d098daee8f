"""Whose an object is that has the name which one of ours must have.

Names follow from the job's, so two jobs of different kinds with one name want the same ones. The first to come has
them; the other is told whose they are, and goes on when they are free.
"""

from trainmaster.api.meta import Object, controller_of
from trainmaster.kube.errors import AlreadyExists, ApiError


class NameTaken(ApiError):
    """An object that is not ours has the name that one of ours must have."""


def taken_by_another(found: Object, refused: AlreadyExists) -> NameTaken:
    """The refusal of the server, with whose it is and what to do."""
    owner = controller_of(found)
    whose = f"{owner.get('kind')} {owner.get('name')}" if owner else "nobody we know"
    why = f"{refused} and belongs to {whose}; delete it, or give the job another name"
    return NameTaken(refused.code, refused.reason, why, refused.status)
