"""Evaluates untrusted expressions within limits of time and memory: CEL and JSONata.

`sandbox.evaluate_bounded` evaluates in a process that can be killed. `evaluation.evaluate_question` evaluates in this
process, for trusted expressions. The required libraries: `pip install 'stele-registry[rules]'`.
"""
