"""Tests of callboard, one module for each module of the source."""
