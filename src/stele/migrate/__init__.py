"""Migration of a whole registry: read it, compare it with a target, import what is missing, and verify the result.

    dump = read_registry(client)          a live registry; for a topic: read_topic_records(broker.read_topic(…))
    plan = compare_dumps(dump, read_registry(target))
    apply_import(dump, target)
    assert not compare_dumps(dump, read_registry(target)).differences

All data pass through one neutral form, `model.Dump`. Plan and verification are the same comparison, made before and
after. Nothing is stored between runs: the next run finds at the target what an interrupted run has done.
"""
