"""CEL, the language of device selectors.

Parsing, macros and type checking are done by `cel-expr-python`, the bindings of Google's C++ implementation,
a sibling of kube-scheduler's Go one. Its result is CEL's portable checked syntax tree, which is evaluated
here. The reasons, for each of the three libraries on PyPI:

- `cel-python` (pure Python) has no type checker, neither optionals nor `cel.bind`, compares values of
  different types with an error instead of false, and needed 30 to 700 microseconds for a selector.
- `common-expression-language` (Rust) has neither a type checker nor optionals nor `cel.bind`, and its values
  are a closed set without quantities or versions.
- `cel-expr-python` (C++, Apache-2.0, wheels for Python 3.11 to 3.14; Linux, macOS on ARM, Windows)
  checks types as Kubernetes does, with Kubernetes' own types and overloads declared to it. But its runtime
  accepts plain Python values only: neither quantities, nor the map that has an empty map for every domain.

So the tree is turned into closures over our own values (1 to 13 microseconds for a selector), and functions
over plain values (string functions, conversions, regular expressions by RE2) are run by the C++ library
(25 to 55 microseconds for a selector that uses them).

The cost of an expression is counted as in Kubernetes (`costs`, `budget`), with its limit, and estimated
beforehand as by its API server (`estimate`, with `estimated_calls` and `estimated_sizes`). The library's
parser is limited to 32 levels, Kubernetes' to 250, and an expression to 1,000 tokens, which bounds the time
to compile it.

Known differences from kube-scheduler's environment: the libraries for URLs, addresses, named formats and
authorisation, `find` and `findAll`, `device` as a value of its own (`has(device.driver)`), comprehensions
with two variables and `sortBy` are not declared, and comparing literals of different number types
(`1.0 < 2`) is refused; all of them are compile errors.
"""
