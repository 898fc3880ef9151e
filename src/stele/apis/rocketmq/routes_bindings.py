"""Binding subjects to records by hand: RIP-42 asks it of a store, the original has no path for it."""

from __future__ import annotations

from litestar import delete, put

from stele.apis.http.paths import decode_segment
from stele.apis.rocketmq import entities as api
from stele.apis.rocketmq import translate
from stele.apis.rocketmq.parameters import READ, AtDesk, RecordId, SubjectName, everywhere

_BINDING = everywhere("/subject/{subject:str}/binding/{record_id:str}")


@put(_BINDING, **READ)
async def bind(desk: AtDesk, subject: SubjectName, record_id: RecordId) -> api.GetSchema:
    # PUT /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/binding/{record}
    """Bind a subject to a record, or by a schema's id to whichever of its records is the newest; twice is as good."""
    state, version = await desk.bind(decode_segment(subject), translate.record_id_in(record_id))
    return translate.get_schema(state, desk.place, decode_segment(subject), version)


@delete(_BINDING, **READ)
async def unbind(desk: AtDesk, subject: SubjectName, record_id: RecordId) -> api.Removed:
    # DELETE /schema-registry/v1/cluster/{cluster}/tenant/{tenant}/subject/{subject}/binding/{record}
    """End the binding of a subject to a record, and no other."""
    number = translate.record_id_in(record_id)
    await desk.unbind(decode_segment(subject), number)
    return api.Removed(number)


ROUTES = [bind, unbind]
