"""Measurements of callboard: each `bench_*` module here has a `main()` that prints its own figures."""
