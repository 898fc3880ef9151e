"""Moving a whole registry: read it from somewhere, see what a target lacks, bring that there, and prove it arrived.

    dump = source.read(client)            a live registry       (or topic.read, archive.read, broker.read)
    plan = compare(dump, source.read(target))
    apply(plan, target)
    assert not compare(dump, source.read(target)).differences

Everything passes through one neutral form, `model.Dump`; plan and verification are the same comparison, made before and
after. Nothing is remembered between runs: what an interrupted run has done, the next one finds at the target.
"""
