"""Expressions that strangers wrote, evaluated within bounds of time and memory: CEL and JSONata.

`sandbox.evaluate_bounded` asks a process that can be killed; `evaluation.evaluate_question` evaluates in this process,
for expressions that one trusts. What they need: `pip install 'stele-registry[rules]'`.
"""
