"""Templates and the functions that turn them into a model's messages and its replies into posts; no actor, no trio."""
